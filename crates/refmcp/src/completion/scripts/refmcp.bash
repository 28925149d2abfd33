# Completion of refmcp in bash: source <(refmcp completions bash)
_refmcp() {
    local IFS=$'\n' line
    COMPREPLY=()
    while read -r line; do
        if [[ $line == :files ]]; then
            compopt -o default +o nospace 2>/dev/null
        else
            COMPREPLY+=("$line")
        fi
    done < <(command refmcp __complete bash -- "$COMP_WORDBREAKS" "${COMP_LINE:0:$COMP_POINT}" 2>/dev/null)
}
complete -o nospace -F _refmcp refmcp
