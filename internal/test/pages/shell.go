package pages

import "strings"

// Commands returns the command lines of a block of console or sh, as words without quotes. In a console block a command line
// begins with "$ "; the other lines are output. A line is split at | && || ; and &, a trailing \ continues it, and redirections and
// comments are left out. A command behind $( is a command too.
func (b Block) Commands() (commands [][]string) {
	for _, line := range b.CommandLines() {
		commands = append(commands, split(line)...)
	}
	return commands
}

// CommandLines returns the command lines of the block as they stand there.
func (b Block) CommandLines() (lines []string) {
	continued := false
	for line := range strings.Lines(b.Code) {
		line = strings.TrimRight(line, "\r\n")
		command, prompt := strings.CutPrefix(line, "$ ")
		if !continued && b.Language == "console" && !prompt {
			continue
		}
		part, goesOn := strings.CutSuffix(command, "\\")
		if continued {
			lines[len(lines)-1] += part
		} else {
			lines = append(lines, part)
		}
		continued = goesOn
	}
	return lines
}

// split splits a command line into commands.
func split(line string) (commands [][]string) {
	line = strings.ReplaceAll(line, "$(", " ; ")
	var words []string
	word, in, quote := "", false, rune(0)
	skip := false // the next word is the file of a redirection
	end := func() {
		if in && !skip {
			words = append(words, word)
		}
		if in {
			skip = false
		}
		word, in = "", false
	}
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		switch c := runes[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '"' && c == '\\' && i+1 < len(runes):
			i++
			word += string(runes[i])
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == '\\' && i+1 < len(runes):
			i++
			word, in = word+string(runes[i]), true
		case c == ' ' || c == '\t':
			end()
		case c == '#' && !in:
			i = len(runes)
		case c == '<' || c == '>':
			if word == "2" { // 2>
				word, in = "", false
			}
			end()
			skip = true
		case c == '&' && skip && !in: // >&2
			in = true
		case strings.ContainsRune("|&;)", c):
			end()
			if words != nil {
				commands = append(commands, words)
			}
			words = nil
		default:
			word, in = word+string(c), true
		}
	}
	if end(); words != nil {
		commands = append(commands, words)
	}
	return commands
}
