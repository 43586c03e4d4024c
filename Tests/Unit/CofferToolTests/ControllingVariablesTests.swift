import CofferCore
import Foundation
import Testing

@testable import CofferTool

/// The variables that `run --all` and `export` do not derive from the name of a secret.
@Suite struct ControllingVariablesTests {
  /// Variables that run code, by their sources: ld.so(8) and glibc's list of unsecure variables, sudo(8), bash(1),
  /// zshall(1), less(1), git(1), and the manuals of the interpreters.
  @Test(
    arguments: """
      GCONV_PATH GETCONF_DIR GLIBC_TUNABLES HOSTALIASES LD_AUDIT LD_DEBUG LD_LIBRARY_PATH LD_PRELOAD LD_PROFILE
      LOCALDOMAIN LOCPATH MALLOC_TRACE NLSPATH RESOLV_HOST_CONF RES_OPTIONS TMPDIR TZDIR
      PATH HOME SHELL USER LOGNAME IFS CDPATH ENV BASH_ENV BASH_FUNC_LS__ BASHOPTS SHELLOPTS PS1 PS4 PROMPT_COMMAND
      GLOBIGNORE FPATH ZDOTDIR NULLCMD READNULLCMD TERMINFO TERMINFO_DIRS TERMCAP
      EDITOR VISUAL PAGER MANPAGER GIT_PAGER BROWSER LESS LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS
      PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONUSERBASE PERL5LIB PERL5OPT PERL5DB PERLLIB
      RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH LUA_INIT
      LUA_INIT_5_4 LUA_PATH LUA_CPATH PHPRC PHP_INI_SCAN_DIR DOTNET_STARTUP_HOOKS CORECLR_PROFILER R_PROFILE R_LIBS_USER
      GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND
      GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_GLOBAL GIT_DIR
      MAKEFLAGS RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER CC GOFLAGS NPM_CONFIG_SCRIPT_SHELL PIP_INDEX_URL
      VIMINIT EXINIT OPENSSL_CONF QT_PLUGIN_PATH GTK_MODULES KRB5_CONFIG AWS_CONFIG_FILE KUBECONFIG
      SWIFT_EXEC GH_BROWSER JRUBY_OPTS HELM_PLUGINS STARSHIP_CONFIG ACLOCAL_PATH UBSAN_OPTIONS KUBE_EDITOR
      HTTP_PROXY HTTPS_PROXY ALL_PROXY SSL_CERT_FILE REQUESTS_CA_BUNDLE SSLKEYLOGFILE
      COFFER_VAULT COFFER_KEY XDG_CONFIG_HOME XDG_DATA_HOME DBUS_SESSION_BUS_ADDRESS
      """.split { $0 == " " || $0 == "\n" }.map(String.init))
  func isLeftOut(_ variable: String) {
    #expect(ControllingVariables.contains(variable, isDerived: false))
  }

  @Test(arguments: ["SOME_EXEC", "MY_BROWSER", "OUR_PAGER", "X_OPTS", "MYOPTS", "A_PLUGINS", "B_ASKPASS", "C_PROXY"])
  func anEndCountsOnlyForTheNameOfASecret(_ variable: String) {
    #expect(ControllingVariables.contains(variable, isDerived: true))
    #expect(!ControllingVariables.contains(variable, isDerived: false))
  }

  /// Variables in which tools expect their secrets.
  @Test(
    arguments: """
      ANTHROPIC_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN BUNDLE_RUBYGEMS__PKG__GITHUB__COM
      CARGO_REGISTRY_TOKEN CARGO_REGISTRIES_MINE_TOKEN COMPOSER_AUTH DATABASE_URL DB_PASSWORD DENO_AUTH_TOKENS
      DOCKER_PASSWORD GEM_HOST_API_KEY GH_TOKEN GITHUB_TOKEN GITLAB_TOKEN GIT_PASSWORD GIT_TOKEN GIT_USERNAME
      GOOGLE_API_KEY HF_TOKEN MYSQL_PWD NODE_AUTH_TOKEN NPM_TOKEN NUGET_API_KEY PASSWORD PGPASSWORD POETRY_PYPI_TOKEN_PYPI
      REDIS_URL RUBYGEMS_API_KEY SECRET_KEY SSH_KEY TOKEN TWINE_PASSWORD UV_PUBLISH_TOKEN YARN_NPM_AUTH_TOKEN ENVIRONMENT
      PATHNAME HOMEPAGE PYTHON_TOKEN JAVA_KEYSTORE_PASSWORD R_TOKEN KRB5_PASSWORD ANSIBLE_VAULT_PASSWORD NPM_CONFIG__AUTH
      PIP_PASSWORD PERL_KEY PHP_SECRET RUBY_TOKEN DBUS_TOKEN XDG_TOKEN MALLOC_KEY GIT_CURL_TOKEN OPENSSL_PASSPHRASE
      MAGICK_KEY QT_LICENSE_KEY BASH_TOKEN LESS_TOKEN DOTNET_TOKEN CONDA_TOKEN PKG_CONFIG_TOKEN
      """.split { $0 == " " || $0 == "\n" }.map(String.init))
  func isPassed(_ variable: String) {
    #expect(!ControllingVariables.contains(variable, isDerived: true))
  }

  @Test func theReferenceHasTheWholeTable() throws {
    let reference = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../../Documentation"
    )
    .appending(path: "Reference.md")
    let text = try String(contentsOf: reference, encoding: .utf8)
    for (purpose, words) in ControllingVariables.groups {
      let variables = words.split(separator: " ").map { "`\($0)`" }.joined(separator: " ")
      let row = "| \(purpose) | \(variables) |"
      #expect(text.contains(row), "\(row)")
    }
  }
}
