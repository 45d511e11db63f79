package misuse

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

type (
	future = agentwait.Future[string]
	raw    = agentwait.Future[json.RawMessage]
)

// given returns receivers of each type: nil, zero, made with nil arguments, and valid. All methods are
// called on them with zero values.
func given(q *queue.Queue) map[string][]any {
	w := worker.New(q, worker.Config{})
	return map[string][]any{
		"queue.Queue":      {(*queue.Queue)(nil), new(queue.Queue), q},
		"queue.Task":       {(*queue.Task)(nil)},
		"queue.Record":     {(*queue.Record)(nil)},
		"worker.Worker":    {(*worker.Worker)(nil), new(worker.Worker), worker.New(nil, worker.Config{}), w},
		"reaper.Reaper":    {(*reaper.Reaper)(nil), new(reaper.Reaper), reaper.New(nil, reaper.Config{}), reaper.New((*queue.Queue)(nil), reaper.Config{}), reaper.New(q, reaper.Config{})},
		"agentwait.Agent":  {(*agentwait.Agent)(nil)},
		"agentwait.Future": {(*future)(nil), new(future)},
	}
}

// results are types that only calls return. Their methods are not called here.
var results = []string{"agentwait.AllTasksFailedError", "agentwait.BadSignalError", "agentwait.TimeoutResult", "agentwait.DivergedError", "agentwait.Outcome", "agentwait.Recording", "agentwait.Settled", "agentwait.WaitImpossibleError",
	"agentwait.WaitTimeoutError", "curfewtest.Stage", "inspect.Explanation", "inspect.Whole", "queue.Claim", "queue.TaskFailedError", "queue.TaskTimedOutError"}

// functions returns calls of functions, with nil for each argument that can be nil.
func functions(q *queue.Queue) map[string][]func() error {
	ctx := context.Background()
	var none context.Context
	var nobody *agentwait.Agent
	var noClient *redis.Client
	last := func(_ any, err error) error { return err }
	third := func(_, _ any, err error) error { return err }
	void := func(call func()) func() error { return func() error { call(); return errPanicWanted } }
	handler := func(context.Context, []byte) ([]byte, error) { return nil, nil }
	return map[string][]func() error{
		"queue.Open": {func() error { return last(queue.Open(none, q.Client(), queue.Config{})) }, func() error { return last(queue.Open(ctx, nil, queue.Config{})) },
			func() error { return last(queue.Open(ctx, noClient, queue.Config{})) }, func() error { return last(queue.Open(ctx, (*redis.ClusterClient)(nil), queue.Config{})) }},
		"queue.LogTo":             {void(func() { queue.LogTo(none, quiet) }), void(func() { queue.LogTo(ctx, nil) })},
		"queue.LogClient":         {void(func() { queue.LogClient(nil) })},
		"queue.ConnectCluster":    {void(func() { queue.ConnectCluster(nil) })},
		"queue.ConnectSentinel":   {void(func() { queue.ConnectSentinel(nil) })},
		"worker.New":              {func() error { return worker.New(nil, worker.Config{}).Run(ctx) }},
		"worker.Handle":           {void(func() { worker.Handle(nil, "k", handler) }), void(func() { worker.Handle[[]byte, []byte](worker.New(q, worker.Config{}), "k", nil) })},
		"worker.Info":             {void(func() { worker.Info(none) })},
		"worker.Progress":         {void(func() { worker.Progress(none, "x") })},
		"worker.Worker.HandleRaw": {void(func() { worker.New(q, worker.Config{}).HandleRaw("k", nil) })},
		"worker.Worker.Use": {void(func() { worker.New(q, worker.Config{}).Use(nil) }), func() error {
			w := worker.New(q, worker.Config{})
			w.HandleRaw("k", handler)
			w.Use(func(worker.Handler) worker.Handler { return nil })
			return w.Run(ctx)
		}},
		"reaper.New":          {func() error { return reaper.New(nil, reaper.Config{}).Run(ctx) }},
		"worker.DeadlineNear": {void(func() { worker.DeadlineNear(none) })},
		"reaper.RunShared":    {void(func() { reaper.RunShared(ctx, nil, quiet) }), void(func() { reaper.RunShared(none, q, quiet) }), void(func() { reaper.RunShared(ctx, q, nil) })},
		"reaper.Alarms":       {void(func() { reaper.Alarms(nil, 0, func() {}) }), void(func() { reaper.Alarms(q, 0, nil) })},
		"reaper.Sweep":        {func() error { return last(reaper.Sweep(ctx, nil, 0, "r", 1, 0)) }, func() error { return last(reaper.Sweep(none, q, 0, "r", 1, 0)) }},
		"events.Read":         {func() error { return last(events.Read(none, q, "", 1, 0)) }, func() error { return last(events.Read(ctx, nil, "", 1, 0)) }},
		"inspect.Audit":       {func() error { return last(inspect.Audit(none, q)) }, func() error { return last(inspect.Audit(ctx, nil)) }},
		"inspect.Repair":      {func() error { return last(inspect.Repair(none, q, nil)) }, func() error { return last(inspect.Repair(ctx, nil, nil)) }},
		"inspect.PlanRepair":  {func() error { return last(inspect.PlanRepair(none, q, nil)) }, func() error { return last(inspect.PlanRepair(ctx, nil, nil)) }},
		"agentwait.Export":    {func() error { return last(agentwait.Export(none, q, "0-x")) }, func() error { return last(agentwait.Export(ctx, nil, "0-x")) }},
		"inspect.Explain":     {func() error { return last(inspect.Explain(none, q, "0-x")) }, func() error { return last(inspect.Explain(ctx, nil, "0-x")) }},
		"inspect.Export":      {func() error { return last(inspect.Export(none, q, "", 1)) }, func() error { return last(inspect.Export(ctx, nil, "", 1)) }},
		"inspect.ExportTo": {func() error { return inspect.ExportTo(none, q, &strings.Builder{}) }, func() error { return inspect.ExportTo(ctx, nil, &strings.Builder{}) },
			func() error { return inspect.ExportTo(ctx, q, nil) }, func() error { return inspect.ExportTo(ctx, q, (*strings.Builder)(nil)) }},
		"inspect.List": {func() error { return last(inspect.List(none, q, inspect.Filter{}, "", 1)) }, func() error { return last(inspect.List(ctx, nil, inspect.Filter{}, "", 1)) }},
		"inspect.Each": {func() error {
			return inspect.Each(none, q, inspect.Filter{}, func(inspect.ListPage) error { return nil })
		},
			func() error {
				return inspect.Each(ctx, nil, inspect.Filter{}, func(inspect.ListPage) error { return nil })
			},
			func() error { return inspect.Each(ctx, q, inspect.Filter{}, nil) }},
		"inspect.OldestIn":     {func() error { return last(inspect.OldestIn(none, q, nil)) }, func() error { return last(inspect.OldestIn(ctx, nil, nil)) }},
		"metrics.NewNamespace": {func() error { return prometheus.NewRegistry().Register(metrics.NewNamespace(nil, metrics.Config{})) }},
		"metrics.NewProcess":   {func() error { return prometheus.NewRegistry().Register(metrics.NewProcess(nil, metrics.Config{})) }},
		"metrics.NewWorker":    {void(func() { metrics.NewWorker(nil, metrics.Config{}) })},
		"inspect.Kinds":        {func() error { return last(inspect.Kinds(none, q)) }, func() error { return last(inspect.Kinds(ctx, nil)) }},
		"inspect.Purge":        {func() error { return last(inspect.Purge(none, q, inspect.Filter{})) }, func() error { return last(inspect.Purge(ctx, nil, inspect.Filter{})) }},
		"queue.ReadRefusal":    {func() error { return queue.ReadRefusal(nil, nil) }},
		"queue.ReadRecord":     {func() error { return last(queue.ReadRecord("0-x", nil)) }},
		"inspect.Suggest":      {func() error { return last(inspect.Suggest(none, q, "k")) }, func() error { return last(inspect.Suggest(ctx, nil, "k")) }},
		"inspect.Figures":      {func() error { return last(inspect.Figures(none, q)) }, func() error { return last(inspect.Figures(ctx, nil)) }},
		"inspect.Sweeps":       {func() error { return last(inspect.Sweeps(none, q)) }, func() error { return last(inspect.Sweeps(ctx, nil)) }},
		"flow.Put":             {func() error { return last(flow.Put(none, q, nil)) }, func() error { return last(flow.Put(ctx, nil, nil)) }},
		"flow.Get":             {func() error { return third(flow.Get(none, q, "f", "")) }, func() error { return third(flow.Get(ctx, nil, "f", "")) }},
		"flow.List":            {func() error { return last(flow.List(none, q)) }, func() error { return last(flow.List(ctx, nil)) }},
		"flow.Start":           {func() error { return last(flow.Start(none, q, "f", nil, "", queue.Task{})) }, func() error { return last(flow.Start(ctx, nil, "f", nil, "", queue.Task{})) }},
		"flow.Runs":            {func() error { return last(flow.Runs(none, q, "f", inspect.Filter{}, "", 1)) }, func() error { return last(flow.Runs(ctx, nil, "f", inspect.Filter{}, "", 1)) }},
		"flow.Read":            {func() error { return last(flow.Read(none, q, "0-x", false)) }, func() error { return last(flow.Read(ctx, nil, "0-x", false)) }},
		"flow.Resume":          {func() error { return flow.Resume(none, q, "0-x", "n", nil) }, func() error { return flow.Resume(ctx, nil, "0-x", "n", nil) }},
		"flow.Register":        {void(func() { flow.Register(nil) })},
		"flow.RegisterWith":    {void(func() { flow.RegisterWith(nil, flow.Config{}) })},
		"agentwait.Handle": {void(func() { agentwait.Handle(nil, "k", func(*agentwait.Agent, string) (string, error) { return "", nil }) }),
			void(func() { agentwait.Handle[string, string](worker.New(q, worker.Config{}), "k", nil) })},
		"agentwait.Await":          {func() error { return last(agentwait.Await[string](nil, nil)) }, func() error { return last(agentwait.Await[string](nobody, new(future))) }},
		"agentwait.AwaitAll":       {func() error { return agentwait.AwaitAll(nil, nil) }, func() error { return agentwait.AwaitAll(nobody) }},
		"agentwait.JoinAll":        {func() error { return last(agentwait.JoinAll[string](nil, nil)) }, func() error { return last(agentwait.JoinAll[string](nobody)) }},
		"agentwait.JoinN":          {func() error { return last(agentwait.JoinN[string](nil, 1, nil)) }},
		"agentwait.JoinAllSettled": {func() error { return last(agentwait.JoinAllSettled[string](nil, nil)) }},
		"agentwait.JoinNSettled":   {func() error { return last(agentwait.JoinNSettled[string](nobody, 1, nil)) }},
		"agentwait.NextEnds":       {func() error { return last(agentwait.NextEnds(nil)) }, func() error { return last(agentwait.NextEnds(nobody)) }},
		"agentwait.Peek":           {func() error { return last(agentwait.Peek[string](nil, nil)) }},
		"agentwait.Select":         {func() error { return last(agentwait.Select[string](nil, nil)) }},
		"agentwait.SelectOK":       {func() error { return last(agentwait.SelectOK[string](nobody, nil)) }},
		"agentwait.Run":            {func() error { return last(agentwait.Run[string](nil, nil, queue.Task{})) }},
		"agentwait.Value":          {func() error { return last(agentwait.Value[string](nil, nil)) }, func() error { return last(agentwait.Value(new(agentwait.Agent), new(future))) }},
		"agentwait.Sleep":          {func() error { return agentwait.Sleep(nil, time.Second) }, func() error { return agentwait.Sleep(nil, 0) }},
		"agentwait.Step": {func() error {
			return last(agentwait.Step(nil, "x", func(context.Context) (int, error) { return 0, nil }))
		}, func() error { return last(agentwait.Step[int](new(agentwait.Agent), "x", nil)) }},
		"agentwait.Synchronize": {func() error { return last(agentwait.Synchronize(nil, agentwait.Sync{}, (*raw)(nil))) }},
		"agentwait.Cancel":      {func() error { return last(agentwait.Cancel[string](nil, "", nil)) }},
		"agentwait.Merge.Of":    {func() error { return last(agentwait.Merge{}.Of(nil)) }},
		"agentwait.CancelAll":   {func() error { return last(agentwait.CancelAll(nil, "")) }},
		"agentwait.Schedule":    {void(func() { agentwait.Schedule[string](nil, nil, queue.Task{Kind: "k"}) })},
		"agentwait.ScheduleAll": {void(func() { agentwait.ScheduleAll[string](nil, "q") })},
		"agentwait.NextSignal":  {void(func() { agentwait.NextSignal[string](nil, nil) }), void(func() { agentwait.NextSignal[string](new(agentwait.Agent), nil) })},
		"agentwait.SendSignal": {func() error { return last(agentwait.SendSignal(ctx, nil, "0-x", "go", 1)) },
			func() error { return last(agentwait.SendSignal(none, q, "0-x", "go", 1)) }},
		"inspect.OldestWaiting": {func() error { return last(inspect.OldestWaiting(none, q)) }, func() error { return last(inspect.OldestWaiting(ctx, nil)) }},
		"events.Recent":         {func() error { return last(events.Recent(none, q, 1)) }, func() error { return last(events.Recent(ctx, nil, 1)) }},
		"inspect.Agents":        {func() error { return last(inspect.Agents(none, q, 1)) }, func() error { return last(inspect.Agents(ctx, nil, 1)) }},
		"inspect.Clock":         {func() error { return last(inspect.Clock(none, q)) }, func() error { return last(inspect.Clock(ctx, nil)) }},
		"inspect.Deadlines":     {func() error { return last(inspect.Deadlines(none, q, 0, 1)) }, func() error { return last(inspect.Deadlines(ctx, nil, 0, 1)) }},
		"inspect.DueTasks": {func() error {
			_, _, err := inspect.DueTasks(none, q, time.Time{}, time.Now(), 1)
			return err
		}, func() error { _, _, err := inspect.DueTasks(ctx, nil, time.Time{}, time.Now(), 1); return err }},
		"inspect.Read":          {func() error { return last(inspect.Read(none, q, "0-x")) }, func() error { return last(inspect.Read(ctx, nil, "0-x")) }},
		"inspect.Workers":       {func() error { return last(inspect.Workers(none, q)) }, func() error { return last(inspect.Workers(ctx, nil)) }},
		"agentwait.Child":       {void(func() { agentwait.Child[string](nil, "x") })},
		"agentwait.Of":          {void(func() { agentwait.Of[string](nil, "x") })},
		"agentwait.Promise":     {void(func() { agentwait.Promise[string](nil, "x", 0) })},
		"agentwait.TimedSignal": {void(func() { agentwait.TimedSignal[string](nil, "x", 1, queue.Task{}) })},
		"agentwait.Signal":      {void(func() { agentwait.Signal[string](nil, "x") })},
		"agentwait.WithClock":   {void(func() { agentwait.WithClock(none, time.Now) }), void(func() { agentwait.WithClock(ctx, nil) })},
		"curfewtest.New":        {void(func() { curfewtest.New(nil) })},
	}
}

var errPanicWanted = fmt.Errorf("it returned, want a panic that says what is nil")

// sentence matches texts that say what is wrong.
var sentence = regexp.MustCompile(`nil|empty|needs|context|must|no future|no such task`)

// refused makes a call that must fail, and returns what is wrong with its error or panic, or "".
func refused(call func() error) (fault string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			fault = fmt.Sprintf("it panics with %v, which is not a text of Curfew", p)
		default:
			if text := fmt.Sprint(p); !sentence.MatchString(text) || strings.Contains(text, "nil pointer") {
				fault = "it panics with " + text
			}
		}
	}()
	switch err := call(); {
	case err == nil:
		return "it returns no error"
	case err == errPanicWanted:
		return err.Error()
	case !sentence.MatchString(err.Error()):
		return "its error does not say what is nil: " + err.Error()
	}
	return ""
}

// A nil argument is an error. A function that returns no error panics in the goroutine of the
// caller, with a text that says what is nil. The test covers every exported function that can get
// nil.
func TestNilIsRefusedInWords(t *testing.T) {
	q, err := queue.Open(t.Context(), redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for name, calls := range functions(q) {
		tried[name] = true
		for i, call := range calls {
			if fault := refused(call); fault != "" {
				t.Errorf("%s, call %d: %s", name, i, fault)
			}
		}
	}
	for name, receivers := range given(q) {
		for i, receiver := range receivers {
			v := reflect.ValueOf(receiver)
			for m := range v.NumMethod() {
				method := v.Type().Method(m)
				full := name + "." + method.Name
				if !takesNothing(v, method) {
					tried[full] = true
					if fault := refused(func() error { return callWithZeros(v.Method(m)) }); fault != "" && !harmless[full] {
						t.Errorf("%s of receiver %d: %s", full, i, fault)
					}
				}
			}
		}
	}
	for _, name := range exported(t) {
		if kind, _, method := strings.Cut(name, "()"); method && slices.Contains(results, kind) {
			continue
		}
		if name = strings.Replace(name, "()", "", 1); !tried[name] && !harmless[name] {
			t.Errorf("%s is exported and can get nil, but this test does not call it", name)
		}
	}
}

// harmless are methods for which nil is a valid value, and functions that take an error or a list.
var harmless = map[string]bool{"flow.Schema": true, "flow.Reference": true, "flow.Presets": true, "flow.Decides": true, "flow.Run.Mermaid": true, "flow.Plan.String": true, "inspect.Hide": true, "queue.Record.Phase": true, "worker.Worker.Use": true, "worker.Discard": true, "worker.Diverged": true, "worker.Fail": true, "worker.RetryAfter": true, "worker.VerdictOf": true,
	"queue.AppendTasks": true, "queue.Queue.TraceSendAll": true, // for packages of this module, which have checked their arguments
	// An agent embeds the context of its handler, and these are methods of that context.
	"agentwait.Agent.Deadline": true, "agentwait.Agent.Done": true, "agentwait.Agent.Err": true, "agentwait.Agent.Value": true}

// takesNothing reports whether a method of a valid receiver has no context that could be nil.
func takesNothing(v reflect.Value, m reflect.Method) bool {
	sound := v.Kind() == reflect.Struct && !v.IsZero() || v.Kind() == reflect.Pointer && !v.IsNil() && !v.Elem().IsZero()
	return sound && (m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]())
}

// callWithZeros calls a method with zero values, and a nil context.
func callWithZeros(method reflect.Value) error {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		args = append(args, reflect.Zero(method.Type().In(i)))
	}
	out := method.Call(args)
	if n := len(out); n > 0 && method.Type().Out(n-1) == reflect.TypeFor[error]() {
		err, _ := out[n-1].Interface().(error)
		return err
	}
	return errPanicWanted
}

// exported returns the functions of the public packages, as "queue.Open", and the methods, as
// "queue.Queue().Cancel", whose receiver or parameters can be nil: pointers, functions, interfaces.
func exported(t *testing.T) (names []string) {
	t.Helper()
	for _, folder := range []string{"queue", "worker", "reaper", "agentwait", "events", "inspect", "curfewtest", "flow"} {
		files, err := filepath.Glob("../../../" + folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() {
					continue
				}
				name, may := folder+"."+f.Name.Name, false
				if f.Recv != nil {
					receiver := f.Recv.List[0].Type
					if star, pointer := receiver.(*ast.StarExpr); pointer {
						may, receiver = true, star.X
					}
					if index, generic := receiver.(*ast.IndexExpr); generic {
						receiver = index.X
					}
					kind := receiver.(*ast.Ident).Name
					if !ast.IsExported(kind) {
						continue
					}
					name = folder + "." + kind + "()." + f.Name.Name
				}
				for _, p := range f.Type.Params.List {
					may = may || mayBeNil(p.Type)
				}
				if may {
					names = append(names, name)
				}
			}
		}
	}
	if len(names) < 100 {
		t.Errorf("found %d functions, want at least 100", len(names))
	}
	return names
}

func mayBeNil(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.StarExpr, *ast.FuncType:
		return true
	case *ast.Ellipsis:
		return mayBeNil(t.Elt)
	case *ast.Ident:
		return slices.Contains([]string{"error", "Handler", "Waiter", "Awaitable", "Namespace"}, t.Name)
	case *ast.SelectorExpr:
		return slices.Contains([]string{"Context", "Writer", "UniversalClient", "TB", "Handler"}, t.Sel.Name)
	}
	return false
}
