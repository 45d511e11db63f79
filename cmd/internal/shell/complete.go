package shell

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/queue"
)

// patience limits the read of names from Redis, because the user waits for the completion of a word.
const patience = 300 * time.Millisecond

// Complete returns the hidden command that the scripts of Completion call. It never fails: a shell shows no errors while it completes.
func Complete() *cli.Command {
	return &cli.Command{
		Name:            "__complete",
		Usage:           "propose words for a shell",
		ArgsUsage:       app.AnotherProgram,
		Hidden:          true,
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:]
			}
			if n := len(words); n > 0 && words[n-1] == `""` { // PowerShell drops an empty argument
				words[n-1] = ""
			}
			if len(words) > 0 {
				l := readLine(c.App.Commands, words)
				l.propose(c.Context, c.App.Writer)
			}
			return nil
		},
	}
}

// line is a command line that is being written.
type line struct {
	commands  []*cli.Command // that may follow
	command   *cli.Command   // nil: none yet
	group     string         // name of the command above it
	flag      cli.Flag       // whose value is being written
	arguments int            // of the command, before the last word
	plain     bool           // no more flags: -- was written
	last      string         // the word that is being written
	redis     string
	namespace string
}

func readLine(commands []*cli.Command, words []string) line {
	l := line{commands: commands, last: words[len(words)-1],
		redis: cmp.Or(append(values(app.RedisVariables), app.DefaultRedis)...), namespace: cmp.Or(append(values(app.NamespaceVariables), app.DefaultNamespace)...)}
	for _, word := range words[:len(words)-1] {
		switch {
		case l.flag != nil:
			l.set(word)
		case word == "--":
			l.plain = true
		case strings.HasPrefix(word, "-") && !l.plain:
			l.readFlag(word)
		default:
			l.readWord(word)
		}
	}
	return l
}

// values returns the values of environment variables.
func values(variables []string) (list []string) {
	for _, name := range variables {
		list = append(list, os.Getenv(name))
	}
	return list
}

// set notes the value of a flag.
func (l *line) set(value string) {
	switch l.flag.Names()[0] {
	case "redis":
		l.redis = value
	case "namespace":
		l.namespace = value
	}
	l.flag = nil
}

// readFlag notes a flag whose value follows, or that has one.
func (l *line) readFlag(word string) {
	if l.command == nil {
		return
	}
	name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
	f := app.FlagOf(l.command, name)
	if _, flag := f.(*cli.BoolFlag); f == nil || flag {
		return
	}
	l.flag = f
	if has {
		l.set(value)
	}
}

// readWord notes a command, or an argument of one.
func (l *line) readWord(word string) {
	at := slices.IndexFunc(l.commands, func(command *cli.Command) bool { return command.HasName(word) })
	if at < 0 && l.command != nil && len(l.commands) == 0 {
		l.arguments++
		return
	}
	if at < 0 { // there is no such command, so nothing can follow
		l.command, l.commands = nil, nil
		return
	}
	if l.command != nil {
		l.group = l.command.Name
	}
	l.command, l.commands = l.commands[at], l.commands[at].Subcommands
}

// propose writes the words that can stand in place of the last one.
func (l *line) propose(ctx context.Context, out io.Writer) {
	say := func(word, about string) {
		if strings.HasPrefix(word, l.last) && app.Plain(word) == word {
			about, _, _ = strings.Cut(about, "\n")
			fmt.Fprintf(out, "%s\t%s\n", word, about)
		}
	}
	switch {
	case l.flag != nil:
		for _, word := range choices(l.flag) {
			say(word, "")
		}
		l.proposeNames(ctx, ofFlags[l.flag.Names()[0]], say)
	case strings.HasPrefix(l.last, "-") && !l.plain:
		if l.command != nil && app.Runs(l.command) {
			for _, f := range l.command.VisibleFlags() {
				usage := ""
				if documented, ok := f.(cli.DocGenerationFlag); ok {
					usage = documented.GetUsage()
				}
				say(app.Dashed(f.Names()[0]), usage)
			}
		}
		say("--help", "show help")
	case len(l.commands) > 0:
		for _, command := range l.commands {
			if !command.Hidden {
				say(command.Name, command.Usage)
			}
		}
	case l.command != nil:
		what := l.argument()
		if strings.Contains(what, "|") { // one of these words
			for word := range strings.SplitSeq(what, "|") {
				say(word, "")
			}
		}
		l.proposeNames(ctx, l.kindOf(what), say)
	}
}

// ofFlags maps flags to the kind of name that their value is.
var ofFlags = map[string]operate.NameKind{"queue": operate.Queues, "queues": operate.Queues, "kind": operate.Kinds, "worker": operate.Workers,
	"namespace": operate.Namespaces, "agent": operate.TaskIDs}

// ofArguments maps the placeholders of arguments to the kind of name that they stand for.
var ofArguments = map[string]operate.NameKind{"ID": operate.TaskIDs, "AGENT": operate.TaskIDs, "QUEUE": operate.Queues, "KIND": operate.Kinds,
	"WORKER": operate.Workers, "NAMESPACE": operate.Namespaces, "RUN": operate.TaskIDs, "DEFINITION": operate.Flows}

// argument returns the placeholder of the argument being completed, such as "ID" for "ID...".
func (l *line) argument() string {
	words := strings.Fields(l.command.ArgsUsage)
	if len(words) == 0 {
		return ""
	}
	at := words[min(l.arguments, len(words)-1)]
	if l.arguments >= len(words) && !strings.Contains(at, "...") {
		return ""
	}
	return strings.Trim(at, "[].")
}

func (l *line) kindOf(what string) operate.NameKind {
	if what == "NAME" && l.group == "namespace" {
		return operate.Namespaces
	}
	if what == "NAME" && l.group == "flow" {
		return operate.Flows
	}
	return ofArguments[what]
}

// proposeNames proposes the names that Redis returns in time.
func (l *line) proposeNames(ctx context.Context, kind operate.NameKind, say func(word, about string)) {
	if kind == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rdb, err := queue.Connect(l.redis)
	if err != nil {
		return
	}
	told := make(chan []string, 1)
	go func() {
		defer rdb.Close()
		told <- operate.Names(ctx, rdb, l.namespace, kind, l.last)
	}()
	select {
	case names := <-told:
		for _, name := range names {
			say(name, "")
		}
	case <-ctx.Done():
	}
}

// choices returns the words that a flag of app.ChoiceFlag takes.
func choices(f cli.Flag) []string {
	if choice, ok := f.(*cli.StringFlag); ok {
		return app.ChoicesOf(choice)
	}
	return nil
}
