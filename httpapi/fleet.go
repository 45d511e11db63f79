package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

type (
	queueLines struct {
		Queues []lines.Queue `json:"queues"`
	}
	kindLines struct {
		Kinds []*lines.Kind `json:"kinds"`
	}
	workerLines struct {
		Workers []lines.Worker `json:"workers"`
	}
	agentLines struct {
		Agents  []lines.Agent `json:"agents"`
		Waiting int64         `json:"waiting"` // how many agents wait, listed or not
		Cut     bool          `json:"cut"`     // there is more to look at: raise look
	}
	overdueLines struct {
		Tasks []lines.Overdue `json:"tasks"`
		More  bool            `json:"cut"` // there are more: raise limit
	}
	statsLine struct {
		Deadlines int64         `json:"deadlines"`
		Limits    int64         `json:"limits"`
		Delayed   int64         `json:"delayed"`
		Waits     int64         `json:"waits"`
		Workers   int64         `json:"workers"`
		Draining  int64         `json:"draining"`
		Retained  int64         `json:"retained"`
		Broken    int64         `json:"broken"`
		Queues    []lines.Queue `json:"queues"`
	}
	workerState struct {
		Worker string `json:"worker"`
		State  string `json:"state"`
	}
)

func fleetRoutes() []route {
	get := func(id, path, summary string, answer any, serve func(*call) (any, error), query ...param) route {
		return route{ID: id, Method: http.MethodGet, Path: path, Role: Read, Summary: summary, Query: query, Answer: answer, Status: []int{200}, Serve: serve}
	}
	return []route{
		get("explainTask", "tasks/{id}/explain", "Says why a task is in its state, and by when it leaves that state", (*inspect.Explanation)(nil), explain, hidePayloads),
		get("getAgent", "agents/{id}", "Says what an agent waits for, and when that ends at the latest", (*inspect.Explanation)(nil), explain, hidePayloads),
		get("listAgents", "agents", "Lists the agents that can be found: those whose wait or whose children have a limit. children_seen are the live children among what was looked at, those with a limit or a delay", agentLines{}, listAgents,
			param{Name: "look", Type: number, Default: "1000", Least: 1, Most: 100_000, Doc: "look at so many deadlines, limits, waits and delays of each partition"}),
		get("listQueues", "queues", "Lists the queues, with how many tasks are where", queueLines{}, listQueues),
		get("getQueue", "queues/{queue}", "Returns the counts and controls of a queue, and how its tasks ended", lines.WholeQueue{}, getQueue),
		get("listKinds", "kinds", "Lists the kinds, with how many of their tasks ended and how long they took", kindLines{}, listKinds),
		get("getKind", "kinds/{kind}", "Returns the defaults of a kind, how its tasks ended and how long they took", lines.WholeKind{}, getKind),
		get("listWorkers", "workers", "Lists the workers that have a lease", workerLines{}, listWorkers),
		get("getWorker", "workers/{worker}", "Returns what a worker says of itself", lines.Worker{}, getWorker),
		get("countDeadlines", "deadlines", "Counts the deadlines of live tasks in parts of a span from now on", lines.Due{}, countDeadlines,
			param{Name: "within", Type: span, Doc: "the span; without it, the nearest that has more than half of all deadlines"},
			param{Name: "buckets", Type: number, Default: "12", Least: 1, Most: 200, Doc: "how many parts the span has"}),
		get("listOverdue", "deadlines/overdue", "Lists the tasks whose deadline is past and whose end is not written yet", overdueLines{}, listOverdue,
			param{Name: "limit", Type: number, Default: "1000", Least: 1, Most: 10_000, Doc: "return so many tasks at most"}),
		get("getStats", "stats", "Counts the tasks of the namespace", statsLine{}, getStats),
		{ID: "drainWorker", Method: http.MethodPost, Path: "workers/{worker}/drain", Role: Operate, Summary: "Asks a worker to stop: it takes no more tasks, and finishes those that it has",
			Answer: workerState{}, Status: []int{200}, Serve: drainWorker},
	}
}

func explain(c *call) (any, error) {
	e, err := inspect.Explain(c, c.q, c.id())
	if err != nil {
		return nil, err
	}
	if c.hides() {
		inspect.Hide(e)
	}
	return e, nil
}

func listAgents(c *call) (any, error) {
	agents, err := inspect.Agents(c, c.q, c.query.number("look"))
	if err != nil {
		return nil, err
	}
	answer := agentLines{Agents: []lines.Agent{}, Waiting: agents.Waiting, Cut: agents.Cut}
	for _, a := range agents.Agents {
		answer.Agents = append(answer.Agents, lines.OfAgent(a))
	}
	return answer, nil
}

// readQueues returns the queues by name, with their workers.
func (c *call) readQueues() (map[string]lines.Queue, error) {
	stats, err := c.q.Stats(c)
	if err != nil {
		return nil, err
	}
	workers, err := inspect.Workers(c, c.q)
	if err != nil {
		return nil, err
	}
	queues := map[string]lines.Queue{}
	for _, s := range stats.Queues {
		queues[s.Queue] = lines.OfQueue(s).With(workers)
	}
	return queues, nil
}

// sorted returns the values of a map, sorted by name.
func sorted[T any](values map[string]T) []T {
	list := []T{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, values[name])
	}
	return list
}

// named returns the value of a name, or a failure that names the nearest one.
func named[T any](what, name string, all map[string]T) (found T, f *failure) {
	if value, ok := all[name]; ok {
		return value, nil
	}
	hint := names.Hint(name, slices.Sorted(maps.Keys(all)))
	return found, fail(http.StatusNotFound, "not_found", "there is no %s %q in this namespace%s", what, refusal.Clip(name), hint).of(what)
}

func listQueues(c *call) (any, error) {
	queues, err := c.readQueues()
	return queueLines{sorted(queues)}, err
}

func getQueue(c *call) (any, error) {
	queues, err := c.readQueues()
	if err != nil {
		return nil, err
	}
	l, f := named("queue", c.path("queue"), queues)
	if f != nil {
		return nil, f
	}
	figures, err := inspect.Figures(c, c.q)
	if err != nil {
		return nil, err
	}
	return lines.WholeQueue{Queue: l, Activity: lines.OfFigures(lines.ByQueue(figures)[l.Queue])}, nil
}

func listKinds(c *call) (any, error) {
	kinds, err := lines.ReadKinds(c, c.q)
	return kindLines{sorted(kinds)}, err
}

func getKind(c *call) (any, error) {
	kinds, err := lines.ReadKinds(c, c.q)
	if err != nil {
		return nil, err
	}
	l, f := named("kind", c.path("kind"), kinds)
	if f != nil {
		return nil, f
	}
	return l.Whole(), nil
}

func (c *call) readWorkers() (map[string]lines.Worker, error) {
	list, err := inspect.Workers(c, c.q)
	workers := map[string]lines.Worker{}
	for _, w := range list {
		workers[w.ID] = lines.OfWorker(w)
	}
	return workers, err
}

func listWorkers(c *call) (any, error) {
	workers, err := c.readWorkers()
	return workerLines{sorted(workers)}, err
}

func getWorker(c *call) (any, error) {
	workers, err := c.readWorkers()
	if err != nil {
		return nil, err
	}
	l, f := named("worker", c.path("worker"), workers)
	return l, nothing(f)
}

func drainWorker(c *call) (any, error) {
	if err := c.q.StopWorker(c, c.path("worker")); err != nil {
		return nil, err
	}
	return workerState{c.path("worker"), string(queue.WorkerDraining)}, nil
}

func countDeadlines(c *call) (any, error) {
	d, err := inspect.Deadlines(c, c.q, c.query.span("within"), c.query.number("buckets"))
	if err != nil {
		return nil, err
	}
	l := lines.OfDue(d)
	l.Past, l.Later = &d.Overdue, &d.Later
	return l, nil
}

func listOverdue(c *call) (any, error) {
	d, err := inspect.Deadlines(c, c.q, time.Minute, 1)
	if err != nil {
		return nil, err
	}
	tasks, more, err := inspect.DueTasks(c, c.q, time.Time{}, d.Now, c.query.number("limit"))
	answer := overdueLines{Tasks: []lines.Overdue{}, More: more}
	for _, t := range tasks {
		answer.Tasks = append(answer.Tasks, lines.OfOverdue(t, d.Now))
	}
	return answer, err
}

func getStats(c *call) (any, error) {
	s, err := c.q.Stats(c)
	answer := statsLine{s.Deadlines, s.Limits, s.Delayed, s.Waits, s.Workers, s.Draining, s.Retained, s.Broken, []lines.Queue{}}
	for _, queue := range s.Queues {
		answer.Queues = append(answer.Queues, lines.OfQueue(queue))
	}
	return answer, err
}
