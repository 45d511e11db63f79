package requirements

import (
	"context"
	"errors"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The inputs and results of the tasks and agents, with the names from the document on parallel
// tasks.
type (
	item      struct{ Item string }
	processed struct {
		Processed string `json:"processed"`
	}
	request struct {
		Source  string `json:"source"`
		DelayMS int    `json:"delay_ms"`
	}
	data struct {
		Source string `json:"source"`
		Data   string `json:"data"`
	}
	operation struct {
		Op      string `json:"op"`
		DelayMS int    `json:"delay_ms"`
	}
	operated struct {
		Op        string `json:"op"`
		Completed bool   `json:"completed"`
	}
	condition struct {
		Item string `json:"item"`
		Fail bool   `json:"fail"`
	}
	items    struct{ Items []string }
	parallel struct {
		ItemCount int         `json:"itemCount"`
		Results   []processed `json:"results"`
	}
	race struct {
		PrimaryDelayMS  int `json:"primaryDelayMs"`
		FallbackDelayMS int `json:"fallbackDelayMs"`
	}
	raced struct {
		WinnerIndex int  `json:"winnerIndex"`
		Winner      data `json:"winner"`
	}
	racedWithCancel struct {
		raced
		CancelAttempts []cancelAttempt `json:"cancelAttempts"`
	}
	cancelAttempt struct {
		Index     int          `json:"index"`
		Cancelled bool         `json:"cancelled"`
		Status    queue.Status `json:"status"`
	}
	failures struct {
		Completed []processed `json:"completed"`
		Failed    []string    `json:"failed"`
	}
	fanned struct {
		InputCount     int      `json:"inputCount"`
		OutputCount    int      `json:"outputCount"`
		ProcessedItems []string `json:"processedItems"`
	}
	mixed struct {
		Phase1  []processed `json:"phase1"`
		Phase2  operated    `json:"phase2"`
		Phase3  []processed `json:"phase3"`
		Success bool        `json:"success"`
	}
)

// cast registers the handlers of the document's agents and tasks.
func (p *play) cast(w *worker.Worker) {
	worker.Handle(w, "process-item", func(_ context.Context, in item) (processed, error) {
		return processed{"processed:" + in.Item}, nil
	})
	worker.Handle(w, "fetch-data", func(ctx context.Context, in request) (data, error) {
		err := p.sleep(ctx, milliseconds(in.DelayMS, 100))
		return data{in.Source, "data-from-" + in.Source}, err
	})
	worker.Handle(w, "slow-operation", func(ctx context.Context, in operation) (operated, error) {
		err := p.sleep(ctx, milliseconds(in.DelayMS, 1000))
		return operated{in.Op, true}, err
	})
	worker.Handle(w, "conditional-fail-task", func(_ context.Context, in condition) (processed, error) {
		if in.Fail {
			return processed{}, errors.New("told to fail: " + in.Item)
		}
		return processed{"processed:" + in.Item}, nil
	})
	agentwait.Handle(w, "parallel-tasks-agent", parallelTasks)
	agentwait.Handle(w, "parallel-with-failures-agent", parallelWithFailures)
	agentwait.Handle(w, "racing-tasks-agent", racingTasks)
	agentwait.Handle(w, "racing-tasks-with-cancel-agent", racingTasksWithCancel)
	agentwait.Handle(w, "fan-out-fan-in-agent", fanOutFanIn)
	agentwait.Handle(w, "mixed-parallel-agent", mixedParallel)
}

func milliseconds(n, otherwise int) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Millisecond
}

func process(a *agentwait.Agent, names ...string) (all []*agentwait.Future[processed]) {
	for _, name := range names {
		all = append(all, agentwait.Schedule[processed](a, item{name}, queue.Task{Kind: "process-item"}))
	}
	return all
}

func fetchData(a *agentwait.Agent, source string, ms int) *agentwait.Future[data] {
	return agentwait.Schedule[data](a, request{source, ms}, queue.Task{Kind: "fetch-data"})
}

func slow(a *agentwait.Agent, op string, ms int) *agentwait.Future[operated] {
	return agentwait.Schedule[operated](a, operation{op, ms}, queue.Task{Kind: "slow-operation"})
}

func conditional(a *agentwait.Agent, name string, fail bool) *agentwait.Future[processed] {
	return agentwait.Schedule[processed](a, condition{name, fail}, queue.Task{Kind: "conditional-fail-task"})
}

func parallelTasks(a *agentwait.Agent, in items) (out parallel, err error) {
	if in.Items == nil {
		in.Items = []string{"a", "b", "c"}
	}
	results, err := agentwait.JoinAll(a, process(a, in.Items...)...)
	return parallel{len(in.Items), results}, err
}

// parallelWithFailures goes on with what has completed, and tells the errors of the others.
func parallelWithFailures(a *agentwait.Agent, in []condition) (out failures, err error) {
	var all []*agentwait.Future[processed]
	for _, c := range in {
		all = append(all, conditional(a, c.Item, c.Fail))
	}
	s, err := agentwait.JoinAllSettled(a, all...)
	if err != nil {
		return out, err
	}
	for _, o := range s.Completed {
		out.Completed = append(out.Completed, o.Value)
	}
	for _, o := range s.Failed {
		out.Failed = append(out.Failed, o.Err.Error())
	}
	return out, nil
}

func racingTasks(a *agentwait.Agent, in race) (raced, error) {
	primary := fetchData(a, "primary", int(milliseconds(in.PrimaryDelayMS, 2000)/time.Millisecond))
	fallback := fetchData(a, "fallback", int(milliseconds(in.FallbackDelayMS, 500)/time.Millisecond))
	first, err := agentwait.Select(a, primary, fallback)
	return raced{first.Index, first.Value}, err
}

// racingTasksWithCancel also returns the results of cancelling the losers.
func racingTasksWithCancel(a *agentwait.Agent, in race) (out racedWithCancel, err error) {
	primary := fetchData(a, "primary", int(milliseconds(in.PrimaryDelayMS, 2000)/time.Millisecond))
	fallback := fetchData(a, "fallback", int(milliseconds(in.FallbackDelayMS, 500)/time.Millisecond))
	first, err := agentwait.Select(a, primary, fallback)
	if err != nil {
		return out, err
	}
	out.raced = raced{first.Index, first.Value}
	for _, c := range first.Attempts {
		status := map[bool]queue.Status{c.Cancelled || c.AlreadyCancelled: queue.Cancelled, c.AlreadyCompleted: queue.Completed,
			c.AlreadyFailed: queue.Failed}[true]
		out.CancelAttempts = append(out.CancelAttempts, cancelAttempt{c.Index, c.Cancelled, status})
	}
	return out, nil
}

// fanOutFanIn makes a checkpoint between fan-out and fan-in. A replay begins after the
// checkpoint, and finds the children by their ids.
func fanOutFanIn(a *agentwait.Agent, in items) (out fanned, err error) {
	if in.Items == nil {
		in.Items = []string{"apple", "banana", "cherry"}
	}
	state := struct {
		Phase     string   `json:"phase"`
		TaskCount int      `json:"taskCount"`
		Children  []string `json:"children"`
	}{}
	var all []*agentwait.Future[processed]
	again, err := a.Restore(&state)
	if err != nil {
		return out, err
	}
	if again {
		for _, id := range state.Children {
			all = append(all, agentwait.Of[processed](a, id))
		}
	} else {
		all = process(a, in.Items...)
		for _, f := range all {
			state.Children = append(state.Children, f.ID())
		}
		state.Phase, state.TaskCount = "fan-out-complete", len(all)
		if err := a.Checkpoint(state); err != nil {
			return out, err
		}
	}
	results, err := agentwait.JoinAll(a, all...)
	for _, r := range results {
		out.ProcessedItems = append(out.ProcessedItems, r.Processed)
	}
	out.InputCount, out.OutputCount = len(in.Items), len(out.ProcessedItems)
	return out, err
}

// mixedParallel makes a checkpoint after each of its first two phases.
func mixedParallel(a *agentwait.Agent, _ any) (out mixed, err error) {
	var state struct {
		Phase int
		Out   mixed
	}
	if _, err := a.Restore(&state); err != nil {
		return out, err
	}
	out = state.Out
	if state.Phase < 1 {
		if out.Phase1, err = agentwait.JoinAll(a, process(a, "phase1-a", "phase1-b")...); err != nil {
			return out, err
		}
		state.Phase, state.Out = 1, out
		if err := a.Checkpoint(state); err != nil {
			return out, err
		}
	}
	if state.Phase < 2 {
		if out.Phase2, err = agentwait.Await(a, slow(a, "sequential", 0)); err != nil {
			return out, err
		}
		state.Phase, state.Out = 2, out
		if err := a.Checkpoint(state); err != nil {
			return out, err
		}
	}
	out.Phase3, err = agentwait.JoinAll(a, process(a, "phase3-a", "phase3-b", "phase3-c")...)
	out.Success = err == nil
	return out, err
}
