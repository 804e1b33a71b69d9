#compdef dgm
# Completion of dgm for zsh. In ~/.zshrc, behind compinit: eval "$(dgm completion zsh)"
_dgm_completion() {
    local -a whole parts
    local kind value help entry program=${~words[1]}
    while IFS=$'\t' read -r kind value help; do
        entry="${value//:/\\:}${help:+:$help}"
        case $kind in
            plain) whole+=("$entry") ;;
            part) parts+=("$entry") ;;
            file) _files ;;
            dir) _files -/ ;;
        esac
    done < <(_DGM_COMPLETE=zsh DGM_LINE="${(j: :)words[1,CURRENT-1]} $PREFIX" "$program" 2>/dev/null)
    (( $#whole )) && _describe -V dgm whole
    (( $#parts )) && _describe -V dgm parts -S ''
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _dgm_completion "$@"
elif (( $+functions[compdef] )); then
    compdef _dgm_completion dgm
else
    autoload -Uz compinit && compinit && compdef _dgm_completion dgm
fi
