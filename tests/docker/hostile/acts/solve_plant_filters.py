"""Plants attributes, filters, text conversions and submodules"""

import task

program = f"touch {task.OUTSIDE}/filter-ran"
for folder in ("", "sums/", "tests/"):
    task.write(
        folder + ".gitattributes",
        "* filter=x diff=x merge=x textconv=x export-subst\n*.py -text working-tree-encoding=UTF-16\n",
    )
task.write(
    ".gitconfig",
    f'[filter "x"]\n\tclean = "{program}"\n[diff "x"]\n\ttextconv = "{program}"\n\tcommand = "{program}"\n',
)
task.write(
    ".gitmodules", f'[submodule "x"]\n\tpath = sums\n\turl = ext::sh -c "{program}"\n\tupdate = !{program}\n'
)
task.write(".gitignore", "*\n")
