#compdef refmcp
# Completion of refmcp in zsh: a file _refmcp in $fpath, or: source <(refmcp completions zsh)
_refmcp() {
    local kind word shown files result=1 typed=$PREFIX
    local -a open open_shown closed closed_shown
    # Nothing is special between single quotes.
    [[ $compstate[quote] == \' ]] || typed=${(Q)typed}
    while IFS=$'\t' read -r kind word shown; do
        case $kind in
            :files) files=1 ;;
            open) open+=("$word"); open_shown+=("$shown") ;;
            closed) closed+=("$word"); closed_shown+=("$shown") ;;
        esac
    done < <(command refmcp __complete zsh -- "${(@Q)words[1,CURRENT-1]}" "$typed" 2>/dev/null)
    (( $#closed )) && compadd -l -d closed_shown -a closed && result=0
    (( $#open )) && compadd -l -d open_shown -S '' -a open && result=0
    if [[ -n $files ]]; then
        # The value of --option=value is the name.
        [[ $PREFIX == --*=* ]] && compset -P '[^=]#='
        _files && result=0
    fi
    return result
}
if [[ $funcstack[1] == _refmcp ]]; then
    _refmcp "$@"
else
    compdef _refmcp refmcp
fi
