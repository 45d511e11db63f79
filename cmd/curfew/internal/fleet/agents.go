package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const agentsHelp = `An agent is a task that waits for other tasks, which may be its children.

    curfew agent ls`

func Agents() *cli.Command {
	return app.Group("agent", "list agents, and say what they wait for", agentsHelp, agentListCommand(), agentGetCommand(), agentExportCommand())
}

var agentList = app.List[lines.Agent]{
	Columns: []app.Column[lines.Agent]{
		{Name: "id", Show: func(l lines.Agent) string { return app.PlainWord(l.ID) }},
		{Name: "kind", Show: func(l lines.Agent) string { return app.PlainWord(l.Kind) }},
		{Name: "queue", Show: func(l lines.Agent) string { return app.PlainWord(l.Queue) }},
		{Name: "status", Show: func(l lines.Agent) string { return app.PlainWord(l.Status) }},
		{Name: "next limit of its wait", Show: func(l lines.Agent) string { return app.OrDash(app.InstantText(l.WaitEnds)) }},
		count("children seen", false, func(l lines.Agent) int64 { return int64(l.Children) }),
	},
	ID: func(l lines.Agent) string { return l.ID },
}

func agentListCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the agents that can be found",
		Description: `Redis has no list of agents. This looks at the tasks that have a deadline, a limit or a delay, the first of each kind of
these, and so it finds agents whose wait has a limit, and those with a live child that has one. It says on stderr how many waiting
agents it did not find. "children seen" are the live children among what it looked at.

    curfew agent ls --look 10000`,
		Flags: append(app.NamespaceFlags(),
			app.NumberFlag("look", 1000, 1, 100_000, "look at so many deadlines, limits, waits and delays of each partition, 1 to 100000"),
			app.ListFlag()),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
			list, err := inspect.Agents(c.Context, q, c.Int("look"))
			if err != nil {
				return err
			}
			waiting := int64(0)
			if err := agentList.Print(c, func(yield func(lines.Agent, error) bool) {
				for _, a := range list.Agents {
					if a.Status == queue.Waiting {
						waiting++
					}
					if !yield(lines.OfAgent(a), nil) {
						return
					}
				}
			}); err != nil {
				return err
			}
			warnNotFound(c, list, waiting)
			return nil
		}),
	}
}

// warnNotFound describes on stderr the agents that the list lacks.
func warnNotFound(c *cli.Context, list inspect.AgentList, waiting int64) {
	if missing := list.Waiting - waiting; missing > 0 {
		reason := "their waits and their children have no limit"
		if list.Cut {
			reason = "it looked at the first deadlines and limits only: look at more with --look"
		}
		app.Note(c, "%s not found: %s", app.Plural(missing, "waiting agent was", "waiting agents were"), reason)
	}
}

func agentGetCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "say what agents wait for, and when that ends at the latest",
		ArgsUsage: "ID...",
		Description: `It says the same as ` + "`curfew explain`" + `, and below it the wait. docs/reference/explain.md explains the names in the JSON.

    curfew agent get 0-1M7Z5HK68BFASHEQ59`,
		Flags: append(app.NamespaceFlags(), app.FormatFlag()),
		Action: func(c *cli.Context) error {
			ids, err := app.Arguments(c, app.Takes(1, math.MaxInt, "the ids of one or more agents"))
			if err != nil {
				return err
			}
			for _, id := range ids {
				if _, err := queue.PartitionOf(id); err != nil {
					return app.Usage("%v", err)
				}
			}
			return app.OnNamespaceAs(queue.AccessRead, app.Takes(1, math.MaxInt, ""), func(c *cli.Context, q *queue.Queue, ids []string) error {
				return showAgents(c, q, ids)
			})(c)
		},
	}
}

func agentExportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print agents with their journals, one line of JSON each, to try new code on them before a deploy",
		ArgsUsage: "[ID...]",
		Description: `It changes nothing. Without an ID it exports the agents that ` + "`curfew agent ls`" + ` finds. An agent that never waited has no
journal, and is left out. The lines have the payloads and results of the agents and their children. A test replays them:
docs/how-to/testing.md.

    curfew agent export > agents.jsonl
    curfew agent export --kind refund > agents.jsonl`,
		Flags: append(app.NamespaceFlags(),
			&cli.StringFlag{Name: "kind", Usage: "export only agents of this kind"},
			app.NumberFlag("look", 1000, 1, 100_000, "without an ID: look at so many deadlines, limits, waits and delays of each partition, 1 to 100000")),
		Action: app.OnNamespaceAs(queue.AccessRead, app.Takes(0, math.MaxInt, "the ids of agents, or nothing"), func(c *cli.Context, q *queue.Queue, ids []string) error {
			if len(ids) > 0 {
				return exportAgents(c, q, ids, true)
			}
			list, err := inspect.Agents(c.Context, q, c.Int("look"))
			if err != nil {
				return err
			}
			waiting := int64(0)
			for _, a := range list.Agents {
				ids = append(ids, a.ID)
				if a.Status == queue.Waiting {
					waiting++
				}
			}
			warnNotFound(c, list, waiting)
			return exportAgents(c, q, ids, false)
		}),
	}
}

// exportAgents prints agents. Without named it leaves out those that have ended meanwhile or have no
// journal.
func exportAgents(c *cli.Context, q *queue.Queue, ids []string, named bool) error {
	for _, id := range ids {
		r, err := agentwait.Export(c.Context, q, id)
		switch {
		case errors.Is(err, refusal.ErrNotFound) && named:
			return app.NoTask(id)
		case !named && (errors.Is(err, refusal.ErrNotFound) || errors.Is(err, refusal.ErrInvalid)):
			continue
		case err != nil:
			return err
		case c.IsSet("kind") && r.Record.Kind != c.String("kind"):
			continue
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if err := app.WriteText(c, string(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// showAgents prints those agents that exist, and then fails if some do not.
func showAgents(c *cli.Context, q *queue.Queue, ids []string) error {
	var missing []string
	for _, id := range ids {
		e, err := inspect.Explain(c.Context, q, id)
		switch {
		case errors.Is(err, refusal.ErrNotFound):
			missing = append(missing, id)
			continue
		case err != nil:
			return err
		}
		if err := showAgent(c, e); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return app.NoTask(missing...)
	}
	return nil
}

func showAgent(c *cli.Context, e *inspect.Explanation) error {
	if app.InJSON(c) {
		return app.PrintLine(c, e)
	}
	if _, err := fmt.Fprintln(c.App.Writer, e); err != nil || e.Wait == nil {
		return err
	}
	w := e.Wait
	const limit = 20
	members := w.Tasks[:min(len(w.Tasks), limit)]
	text := strings.Join(members, " ")
	if more := len(w.Tasks) - len(members); more > 0 {
		text += fmt.Sprintf(" and %s more", app.Grouped(int64(more)))
	}
	return facts(c, e.ID, "mode", string(w.Mode), "label", app.PlainText(w.Label), "reason", app.PlainText(w.Because),
		"members", strconv.Itoa(w.Members), "ended", fmt.Sprintf("%d: %d ok, %d bad", w.Settled, w.OK, w.Bad), "needs", strconv.Itoa(w.Need),
		"limit", app.OrDash(app.InstantText(w.Limit)), "since", app.InstantText(e.Since), "waits for", text)
}
