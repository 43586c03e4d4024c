internal import Coffer

/// Environment variables that control programs: which program is started, which code or configuration it loads,
/// where it connects to.
///
/// `run --all` and `export` derive variables from the names of secrets. Whoever can name a secret could run code
/// through one of these, so they are left out there, and must be named with `--set`. The list cannot be complete,
/// because any program can read a variable of its own.
enum ControllingVariables {
  struct Group {
    /// What the variables control, for Documentation/Reference.md.
    let purpose: String
    let names: String
    let prefixes: String
    let suffixes: String

    init(_ purpose: String, names: String = "", prefixes: String = "", suffixes: String = "") {
      (self.purpose, self.names, self.prefixes, self.suffixes) = (purpose, names, prefixes, suffixes)
    }
  }

  /// Words separated by spaces. Sources: ld.so(8), secure-execution mode, and glibc's sysdeps/generic/unsecvars.h;
  /// the variables that sudo(8) removes; the manuals of the programs.
  static let groups = [
    Group(
      "the loader and the C library",
      names: """
        GCONV_PATH GETCONF_DIR GLIBC_TUNABLES HOSTALIASES LIBPATH LOCALDOMAIN LOCPATH NIS_PATH NLSPATH PATH_LOCALE \
        RESOLV_HOST_CONF RES_OPTIONS SHLIB_PATH TZ TZDIR
        """, prefixes: "DYLD_ LD_ LDR_ MALLOC_ _RLD"),
    Group(
      "the user, directories, the terminal and the session",
      names: """
        CREDENTIALS_DIRECTORY DISPLAY GNUPGHOME GPG_TTY HOME LANG LANGUAGE LOGNAME MAIL MAILPATH NOTIFY_SOCKET OLDPWD \
        PATH PWD SHELL SSH_AUTH_SOCK SUDO_COMMAND SUDO_GID SUDO_PS1 SUDO_UID SUDO_USER TEMP TEMPDIR TERM TERMCAP TERMPATH \
        TMP TMPDIR USER USERNAME WAYLAND_DISPLAY XAUTHORITY
        """, prefixes: "COFFER_ DBUS_ LC_ LISTEN_ TERMINFO XDG_"),
    Group(
      "shells",
      names: """
        BASHOPTS CDPATH ENV EXECIGNORE FIGNORE FPATH GLOBIGNORE HISTFILE IFS INPUTRC MODULE_PATH NULLCMD PROMPT \
        PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 READNULLCMD RPROMPT SHELLOPTS TMPPREFIX ZDOTDIR
        """, prefixes: "BASH_"),
    Group(
      "programs that others start, and their options",
      names: """
        BROWSER CURL_HOME CVS_RSH EDITOR EXINIT FCEDIT GREP_OPTIONS HG HGEDITOR HGRCPATH LYNX_CFG MAILCAPS MANOPT \
        MANPATH MYVIMRC NETRC PARALLEL PSQLRC RIPGREP_CONFIG_PATH RSYNC_RSH SCREENRC SSH_ASKPASS \
        SSH_ASKPASS_REQUIRE SVN_SSH TAR_OPTIONS TERMINAL VIM VIMINIT VIMRUNTIME VISUAL WGETRC
        """, prefixes: "EMACS FZF_DEFAULT_ GVIM LESS NVIM", suffixes: "PAGER _ASKPASS _BROWSER _EDITOR"),
    Group(
      "git",
      names: """
        GIT_ALLOW_PROTOCOL GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_ATTR_SOURCE GIT_CEILING_DIRECTORIES GIT_COMMON_DIR \
        GIT_DIFF_OPTS GIT_DIR GIT_DISCOVERY_ACROSS_FILESYSTEM GIT_EXEC_PATH GIT_EXTERNAL_DIFF GIT_INDEX_FILE \
        GIT_NAMESPACE GIT_OBJECT_DIRECTORY GIT_PROTOCOL_FROM_USER GIT_PROXY_COMMAND GIT_SSH GIT_SSH_COMMAND \
        GIT_SSH_VARIANT GIT_TEMPLATE_DIR GIT_TEXTDOMAINDIR GIT_WORK_TREE
        """, prefixes: "GIT_CONFIG GIT_CURL_ GIT_REDIRECT_ GIT_SSL_ GIT_TRACE"),
    Group(
      "interpreters and virtual machines",
      names: """
        ANT_ARGS ANT_HOME ANT_OPTS AWKLIBPATH AWKPATH BUNDLE_APP_CONFIG BUNDLE_BIN_PATH BUNDLE_GEMFILE BUNDLE_PATH \
        BUN_INSTALL BUN_OPTIONS CAML_LD_LIBRARY_PATH CATALINA_OPTS CLASSPATH COMPOSER COMPOSER_HOME DENO_DIR \
        ELECTRON_RUN_AS_NODE ELIXIR_ERL_OPTIONS GEM_HOME GEM_PATH GHCRTS GHC_PACKAGE_PATH GRADLE_OPTS \
        GRADLE_USER_HOME IBM_JAVA_OPTIONS JDK_JAVA_OPTIONS JRE_HOME MAVEN_ARGS MAVEN_OPTS NODE_COMPILE_CACHE \
        NODE_ICU_DATA NODE_OPTIONS NODE_PATH NODE_REDIRECT_WARNINGS NODE_REPL_EXTERNAL_MODULE \
        NODE_REPL_HISTORY NODE_V8_COVERAGE OCAMLPATH OCAMLRUNPARAM OPENJ9_JAVA_OPTIONS RUBYGEMS_GEMDEPS RUBYLIB \
        RUBYLIB_PREFIX RUBYOPT RUBYPATH RUBYSHELL SBT_OPTS SWIFT_BACKTRACE \
        SWIFT_EXEC TCLLIBPATH TCL_LIBRARY TK_LIBRARY VIRTUAL_ENV
        """,
      prefixes: """
        BUNDLER_ BUNDLE_USER_ COMPLUS_ CONDA_ CORECLR_ COR_ DOTNET_ ERL_ GUILE_ JAVA_ JULIA_ LUA_ MONO_ PERL PHPRC \
        PHP_ PYTHON RUBY_ R_ _JAVA_
        """),
    Group(
      "compilers, build tools and package managers",
      names: """
        AR AS CARGO CARGO_ENCODED_RUSTFLAGS CARGO_HOME CC CFLAGS COMPILER_PATH CONFIG_SHELL CONFIG_SITE CPATH CPP \
        CPPFLAGS CXX CXXFLAGS C_INCLUDE_PATH CPLUS_INCLUDE_PATH GCC_EXEC_PREFIX GNUMAKEFLAGS GOAUTH GOBIN GOCACHE \
        GOENV GOFLAGS GOINSECURE GONOSUMDB GOPATH GOPROXY GOROOT GOSUMDB GOTOOLCHAIN GOTOOLDIR GOWORK LD LDFLAGS \
        LIBRARY_PATH M4 M4PATH MAKE MAKEFILES MAKEFLAGS MFLAGS RUSTC RUSTC_WORKSPACE_WRAPPER RUSTC_WRAPPER RUSTDOC \
        RUSTDOCFLAGS RUSTFLAGS RUSTFMT TF_PLUGIN_CACHE_DIR UV_CONFIG_FILE UV_DEFAULT_INDEX UV_EXTRA_INDEX_URL \
        UV_FIND_LINKS UV_INDEX UV_INDEX_URL UV_PYTHON YARN_IGNORE_PATH YARN_PLUGINS YARN_RC_FILENAME YARN_YARN_PATH
        """,
      prefixes: """
        ANSIBLE_ CARGO_ALIAS_ CARGO_BUILD_ CARGO_CREDENTIAL_ALIAS_ CARGO_TARGET_ CCACHE_ CGO_ CMAKE_ NPM_CONFIG_ PIP_ \
        PKG_CONFIG RUSTUP_ TF_CLI_
        """, suffixes: "_CREDENTIAL_PROVIDER _CREDENTIAL_PROVIDERS"),
    Group(
      "modules and data of libraries",
      names: """
        FONTCONFIG_FILE FONTCONFIG_PATH GI_TYPELIB_PATH GS_LIB GS_OPTIONS LLVM_PROFILE_FILE ODBCINI ODBCINSTINI \
        ODBCSYSINI SASL_CONF_PATH SASL_PATH TEXINPUTS XAPPLRESDIR XENVIRONMENT XFILESEARCHPATH XLOCALEDIR
        """,
      prefixes: """
        GDK_ GIO_ GROFF_ GSETTINGS_ GST_ GTK KRB5 LIBGL_ MAGICK_ OPENSSL_ QT_ TEXMF VALGRIND_ VK_
        """, suffixes: "SAN_OPTIONS"),
    Group(
      "connections, and files with credentials or trusted keys",
      names: """
        AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST KUBECONFIG \
        NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED PGSERVICEFILE PGSYSCONFDIR SSLKEYLOGFILE
        """, prefixes: "SSL_CERT_", suffixes: "_CA_BUNDLE _PROXY"),
  ]

  private static let names = Set(groups.flatMap { words($0.names) })
  private static let prefixes = groups.flatMap { words($0.prefixes) }
  private static let suffixes = groups.flatMap { words($0.suffixes) }

  static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

  static func contains(_ variable: String) -> Bool {
    names.contains(variable) || prefixes.contains { variable.hasPrefix($0) }
      || suffixes.contains { variable.hasSuffix($0) }
  }

  /// Returns the assignments to other variables. Prints which secrets were left out, and why.
  static func leaveOut(_ assignments: [EnvironmentAssignment], advice: String) -> [EnvironmentAssignment] {
    let leftOut = assignments.filter { contains($0.variable) }
    if leftOut.isEmpty { return assignments }
    let most = 10
    var list = leftOut.prefix(most).map { "“\($0.identifier.account)” as \($0.variable)" }.joined(
      separator: ", ")
    if leftOut.count > most { list += " and \(leftOut.count - most) more" }
    note("secret: Left out, because such a variable can change what a program runs: \(list). \(advice)")
    return assignments.filter { !contains($0.variable) }
  }
}

extension ControllingVariables {
  /// The row of the table in Documentation/Reference.md.
  static func row(_ group: Group) -> String {
    let patterns = words(group.prefixes).map { $0 + "*" } + words(group.suffixes).map { "*" + $0 }
    let variables = (words(group.names) + patterns).map { "`\($0)`" }.joined(separator: " ")
    return "| \(group.purpose) | \(variables) |"
  }
}
