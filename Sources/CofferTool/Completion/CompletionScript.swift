/// The scripts that connect a shell to `secret complete`. They contain no commands and options of `secret`.
enum CompletionScript {
  /// bash inserts the words as they are, so `secret` quotes them for their place.
  static let bash = #"""
    # Completion of secret in bash 4.4 or later.
    _secret() {
      local -a answer=()
      local index name
      mapfile -d '' -t answer < <(
        command secret complete bash -- "${COMP_LINE:0:COMP_POINT}" "$2" "$COMP_TYPE" 2>/dev/null
      )
      COMPREPLY=()
      case "${answer[0]-}" in
        words) COMPREPLY=("${answer[@]:1}") ;;
        files) compopt -o default ;;
        command)
          for ((index = 1; index < COMP_CWORD; index++)); do
            [[ ${COMP_WORDS[index]} == -- ]] && break
          done
          ((index++))
          if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "$index"
          elif declare -F _command_offset >/dev/null; then
            _command_offset "$index"
          elif ((index == COMP_CWORD)) && [[ $2 != */* ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$2" | while IFS= read -r name; do printf '%q\n' "$name"; done)
          else
            compopt -o default
          fi
          ;;
      esac
    }
    complete -F _secret secret

    """#

  /// zsh quotes the words itself.
  static let zsh = #"""
    #compdef secret
    # Completion of secret in zsh.
    _secret() {
      local -a answer texts shown
      local text list
      answer=("${(@0)$(
        command secret complete zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null
        print -n .
      )}")
      case ${answer[1]} in
        words)
          for text list in "${(@)answer[2,-2]}"; do
            texts+=("$text")
            shown+=("$list")
          done
          compadd -l -d shown -a texts
          ;;
        files) _files ;;
        command)
          local index=${words[(i)--]}
          (( CURRENT -= index ))
          shift index words
          _normal
          ;;
      esac
    }
    if [[ $funcstack[1] == _secret ]]; then
      _secret "$@"
    else
      compdef _secret secret
    fi

    """#

  /// fish quotes the words itself.
  static let fish = #"""
    # Completion of secret in fish 3.4 or later.
    function __secret_complete
      set -l words (commandline -opc)
      set -l current (commandline -ct)
      set -l answer (command secret complete fish -- $words[2..] "$current" 2>/dev/null)
      switch "$answer[1]"
        case words
          test (count $answer) -gt 1; and printf '%s\n' $answer[2..]
        case files
          __fish_complete_path "$current"
        case command
          __fish_complete_subcommand --fcs-skip=(contains -i -- -- $words)
      end
    end
    complete -c secret -f -a '(__secret_complete)'

    """#
}
