# Completion of dgm for fish. Once: dgm completion fish > ~/.config/fish/completions/dgm.fish
function __dgm_completion
    set -l line (commandline -cp | string collect)
    set -l program (commandline -po)[1]
    for row in (_DGM_COMPLETE=fish DGM_LINE="$line" $program 2>/dev/null)
        set -l columns (string split --max 2 \t -- $row)
        switch $columns[1]
            case plain part
                printf '%s\t%s\n' $columns[2] "$columns[3]"
            case dir
                __fish_complete_directories (commandline -ct) ""
            case file
                __fish_complete_path (commandline -ct) ""
        end
    end
end
complete --no-files --keep-order --command dgm --arguments '(__dgm_completion)'
