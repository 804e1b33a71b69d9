# Completion of dgm for bash. In ~/.bashrc: eval "$(dgm completion bash)"
_dgm_completion() {
    local kind value help program=${1/#\~\//$HOME/} files=() row
    COMPREPLY=()
    while IFS=$'\t' read -r kind value help; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            part) COMPREPLY+=("$value"); compopt -o nospace ;;
            file | dir)
                compopt -o filenames
                mapfile -t files < <(compgen -"${kind:0:1}" -- "${COMP_WORDS[COMP_CWORD]#[=:]}")
                COMPREPLY+=("${files[@]}")
                ;;
        esac
    done < <(_DGM_COMPLETE=bash DGM_LINE="${COMP_LINE:0:COMP_POINT}" DGM_BREAKS=$COMP_WORDBREAKS "$program" 2>/dev/null)
}
complete -o nosort -F _dgm_completion dgm
