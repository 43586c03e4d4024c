internal import Coffer

/// Environment variables that control programs: which program is started, which code or configuration it loads, where
/// it connects to.
///
/// `run --all` and `export` derive variables from the names of secrets. Whoever can name a secret could run code
/// through one of these, so they are refused or left out there, and must be named with `--set`. The list cannot be
/// complete, because any program can read a variable of its own.
enum ControllingVariables {
  /// The variables by what they control, as in Documentation/Reference.md. The words are whole names or, for names that
  /// programs make up, their beginning or end with an asterisk for the rest. They are exact, so that no token's name is
  /// among them. Sources: ld.so(8), secure-execution mode, and glibc's sysdeps/generic/unsecvars.h; the variables that
  /// sudo(8) removes; the manuals of the programs.
  static let groups: KeyValuePairs = [
    "the loader and the C library": """
    GCONV_PATH GETCONF_DIR GLIBC_TUNABLES HOSTALIASES LOCALDOMAIN LOCPATH MALLOC_TRACE NLSPATH \
    RESOLV_HOST_CONF RES_OPTIONS TZDIR LD_*
    """,
    "the user, directories, the terminal and the session": """
    CREDENTIALS_DIRECTORY DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS DISPLAY GNUPGHOME GPG_TTY HOME \
    LOGNAME NOTIFY_SOCKET OLDPWD PATH PWD SHELL SSH_AUTH_SOCK TEMP TERM TERMCAP TERMINFO TERMINFO_DIRS TMP \
    TMPDIR USER WAYLAND_DISPLAY XAUTHORITY XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS \
    XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME COFFER_*
    """,
    "shells": """
    BASHOPTS BASH_ENV CDPATH ENV FPATH GLOBIGNORE HISTFILE IFS INPUTRC NULLCMD PROMPT_COMMAND PS0 PS1 PS4 \
    READNULLCMD SHELLOPTS TMPPREFIX ZDOTDIR BASH_FUNC_*
    """,
    "programs that others start, and their options": """
    BROWSER CURL_HOME CVS_RSH EDITOR EMACSLOADPATH EXINIT FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS HGEDITOR \
    HGRCPATH KUBECTL_EXTERNAL_DIFF LESS LESSCLOSE LESSKEY LESSKEYIN LESSKEY_CONTENT LESSKEY_SYSTEM \
    LESSOPEN MANOPT MANPATH MYVIMRC NETRC PARALLEL PSQLRC RIPGREP_CONFIG_PATH RSYNC_CONNECT_PROG RSYNC_RSH \
    SCREENRC SSH_ASKPASS SSH_ASKPASS_REQUIRE SSH_PKCS11_HELPER SSH_SK_HELPER SSH_SK_PROVIDER SVN_SSH \
    TAR_OPTIONS VIM VIMINIT VIMRUNTIME VISUAL WGETRC *PAGER *_ASKPASS *_EDITOR
    """,
    "git": """
    GIT_ALLOW_PROTOCOL GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_DIR GIT_EXEC_PATH \
    GIT_EXTERNAL_DIFF GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_PROXY_COMMAND GIT_SSH GIT_SSH_COMMAND \
    GIT_SSL_CAINFO GIT_SSL_NO_VERIFY GIT_TEMPLATE_DIR GIT_WORK_TREE GIT_CONFIG* GIT_TRACE*
    """,
    "interpreters and virtual machines": """
    AWKLIBPATH AWKPATH BUNDLE_GEMFILE BUNDLE_PATH BUN_OPTIONS CAML_LD_LIBRARY_PATH CLASSPATH COMPOSER \
    COMPOSER_HOME CORECLR_ENABLE_PROFILING CORECLR_PROFILER CORECLR_PROFILER_PATH CORECLR_PROFILER_PATH_32 \
    CORECLR_PROFILER_PATH_64 DENO_DIR DOTNET_ROOT DOTNET_STARTUP_HOOKS ELECTRON_RUN_AS_NODE \
    ELIXIR_ERL_OPTIONS ERL_AFLAGS ERL_FLAGS ERL_LIBS ERL_ZFLAGS GEM_HOME GEM_PATH GHCRTS GRADLE_OPTS \
    GRADLE_USER_HOME GS_OPTIONS GUILE_LOAD_COMPILED_PATH GUILE_LOAD_PATH JAVA_HOME JAVA_OPTS \
    JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS JULIA_DEPOT_PATH JULIA_LOAD_PATH MAVEN_ARGS MAVEN_OPTS NODE_OPTIONS \
    NODE_PATH NODE_REPL_EXTERNAL_MODULE OCAMLRUNPARAM PERL5DB PERL5LIB PERL5OPT PERL5SHELL PERLLIB PHPRC \
    PHP_INI_SCAN_DIR PYTHONBREAKPOINT PYTHONEXECUTABLE PYTHONHOME PYTHONINSPECT PYTHONPATH \
    PYTHONPYCACHEPREFIX PYTHONSTARTUP PYTHONUSERBASE PYTHONWARNINGS RUBYLIB RUBYOPT R_ENVIRON \
    R_ENVIRON_USER R_HOME R_LIBS R_LIBS_SITE R_LIBS_USER R_PROFILE R_PROFILE_USER SBT_OPTS SWIFT_BACKTRACE \
    TCLLIBPATH VIRTUAL_ENV _JAVA_OPTIONS LUA_CPATH* LUA_INIT* LUA_PATH*
    """,
    "compilers, build tools and package managers": """
    ANSIBLE_CONFIG ANSIBLE_LIBRARY AR AS CARGO_ENCODED_RUSTFLAGS CARGO_HOME CC CCACHE_PREFIX CFLAGS \
    CGO_CFLAGS CGO_LDFLAGS CMAKE_TOOLCHAIN_FILE COMPILER_PATH CONFIG_SITE CPATH CPP CXX CXXFLAGS \
    C_INCLUDE_PATH GCC_EXEC_PREFIX GNUMAKEFLAGS GOAUTH GOCACHEPROG GOENV GOFLAGS GOINSECURE GONOPROXY \
    GONOSUMDB GOPATH GOPRIVATE GOPROXY GOROOT GOSUMDB GOTOOLCHAIN LD LDFLAGS LEX LIBRARY_PATH M4 MAKE \
    MAKEFILES MAKEFLAGS NIX_CONFIG NPM_CONFIG_GIT NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_NODE_OPTIONS \
    NPM_CONFIG_PREFIX NPM_CONFIG_REGISTRY NPM_CONFIG_SCRIPT_SHELL NPM_CONFIG_USERCONFIG PIP_CONFIG_FILE \
    PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_INDEX_URL PIP_PYTHON PIP_TRUSTED_HOST PKG_CONFIG \
    PKG_CONFIG_LIBDIR PKG_CONFIG_PATH RUSTC RUSTC_WORKSPACE_WRAPPER RUSTC_WRAPPER RUSTDOC RUSTFLAGS \
    RUSTUP_DIST_SERVER RUSTUP_HOME RUSTUP_TOOLCHAIN TF_CLI_CONFIG_FILE UV_CONFIG_FILE UV_DEFAULT_INDEX \
    UV_INDEX UV_INDEX_URL UV_PYTHON YACC YARN_YARN_PATH CARGO_ALIAS_* CARGO_BUILD_* CARGO_TARGET_* \
    TF_CLI_ARGS* *_CREDENTIAL_PROVIDER *_CREDENTIAL_PROVIDERS
    """,
    "modules and data of libraries": """
    FONTCONFIG_FILE FONTCONFIG_PATH GIO_EXTRA_MODULES GIO_MODULE_DIR GI_TYPELIB_PATH GST_PLUGIN_PATH \
    GTK_MODULES GTK_PATH KRB5CCNAME KRB5_CONFIG KRB5_KTNAME ODBCINI ODBCSYSINI OPENSSL_CONF OPENSSL_ENGINES \
    OPENSSL_MODULES QT_PLUGIN_PATH SASL_PATH *SAN_OPTIONS
    """,
    "connections, and files with credentials or trusted keys": """
    AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST KUBECONFIG \
    NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED PGSERVICEFILE PGSYSCONFDIR SSLKEYLOGFILE SSL_CERT_DIR \
    SSL_CERT_FILE *_CA_BUNDLE *_PROXY
    """,
  ]

  private static let names = Set(groups.flatMap { $0.value.split(separator: " ").map(String.init) })
  private static let prefixes = names.filter { $0.hasSuffix("*") }.map { String($0.dropLast()) }
  private static let suffixes = names.filter { $0.hasPrefix("*") }.map { String($0.dropFirst()) }

  static func contains(_ variable: String) -> Bool {
    names.contains(variable) || prefixes.contains { variable.hasPrefix($0) }
      || suffixes.contains { variable.hasSuffix($0) }
  }

  /// Returns the assignments. With `skips`, those to such variables are left out. Otherwise throws a failure that names
  /// up to ten of them and ends in `advice`.
  static func checked(
    _ assignments: [EnvironmentAssignment], skips: Bool, advice: String
  ) throws(Failure) -> [EnvironmentAssignment] {
    let unsafe = assignments.filter { contains($0.variable) }
    if unsafe.isEmpty { return assignments }
    if skips { return assignments.filter { !contains($0.variable) } }
    let list = unsafe.map { "“\($0.identifier.account)” as \($0.variable)" }.listed(most: 10)
    throw .usage("Such a variable can change what a program runs: \(list). \(advice)")
  }
}
