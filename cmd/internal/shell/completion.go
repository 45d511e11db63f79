package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// scripts holds a script for each shell, for a program with the name curfew. A script calls `curfew
// __complete` with the words before the cursor, the last of which may be empty. The output has a
// proposal on each line: the word, a tab, and its description.
var scripts = map[string]string{
	"bash": `_curfew() {
  local IFS=$'\n' line words
  COMPREPLY=()
  words=$(COMP_WORDBREAKS="${COMP_WORDBREAKS//:}" curfew __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  for line in $words; do
    COMPREPLY+=("${line%%$'\t'*}")
  done
}
complete -o default -F _curfew curfew
`,
	"zsh": `#compdef curfew
_curfew() {
  local -a found
  local line word about
  for line in "${(@f)$(curfew __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    word="${line%%$'\t'*}"
    about="${line#*$'\t'}"
    [[ -n "$word" ]] && found+=("${word//:/\\:}:$about")
  done
  if (( ${#found} )); then
    _describe curfew found
  else
    _files
  fi
}
if [[ "$funcstack[1]" == _curfew ]]; then _curfew "$@"; else compdef _curfew curfew; fi
`,
	"fish": `function __curfew_complete
  set -l words (commandline -opc) (commandline -ct)
  curfew __complete -- $words[2..-1] 2>/dev/null
end
complete -c curfew -f -a '(__curfew_complete)'
`,
	"powershell": `Register-ArgumentCompleter -Native -CommandName curfew -ScriptBlock {
  param($word, $ast, $cursor)
  $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  if ($word -eq '') { $words += '""' }
  curfew __complete '--' @words 2>$null | ForEach-Object {
    $found, $about = $_ -split "` + "`" + `t", 2
    if (-not $about) { $about = $found }
    [System.Management.Automation.CompletionResult]::new($found, $found, 'ParameterValue', $about)
  }
}
`,
}

// Completion returns the command that prints the script for a shell, for the program with this name.
func Completion(program string) *cli.Command {
	named := func(text string) string { return strings.ReplaceAll(text, "curfew", program) }
	shells := slices.Sorted(maps.Keys(scripts))
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script with which a shell completes commands, flags, ids and names",
		ArgsUsage: strings.Join(shells, "|"),
		Description: named(`It completes ids, queues, kinds, workers and namespaces from the Redis of --redis or REDIS_URL, if that answers within
300 ms.

    source <(curfew completion bash)
    curfew completion zsh > "${fpath[1]}/_curfew"
    curfew completion fish > ~/.config/fish/completions/curfew.fish
    curfew completion powershell | Out-String | Invoke-Expression`),
		Action: func(c *cli.Context) error {
			words, err := app.Arguments(c, app.Takes(1, 1, app.OneOf(shells)))
			if err != nil {
				return err
			}
			script, known := scripts[words[0]]
			if !known {
				return app.UsageOf(c, "there is no script for %q%s: write %s", words[0], app.DidYouMean(words[0], shells), app.OneOf(shells))
			}
			_, err = fmt.Fprint(c.App.Writer, named(script))
			return app.Failure(c, err)
		},
	}
}
