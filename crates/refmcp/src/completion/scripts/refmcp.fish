# Completion of refmcp in fish: refmcp completions fish | source
function __refmcp_complete
    # What is typed may have quotes, the last of which may be open.
    set -l token (commandline -ct)
    set -l last (string unescape -- $token; or string unescape -- $token\'; or string unescape -- $token\")
    for line in (command refmcp __complete fish -- (commandline -opc) "$last" 2>/dev/null)
        if test "$line" = :files
            # The files that fish completes for a command that it knows nothing about.
            complete -C "'' $token"
        else
            printf '%s\n' "$line"
        end
    end
end
complete -c refmcp -f -a '(__refmcp_complete)'
