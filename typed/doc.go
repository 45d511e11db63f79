// Package typed has kinds of tasks that know the Go types of their arguments and results. A producer can send
// only arguments that the handler reads, and gets the result as a value.
//
//	var Resize = typed.Kind[ResizeArgs, ResizeResult]{
//		Name:     "resize",
//		Defaults: queue.Defaults{Timeout: time.Minute, MaxRetries: 3},
//	}
//
//	Resize.Handle(w, func(ctx context.Context, in ResizeArgs) (ResizeResult, error) { … })
//
//	out, err := Resize.Run(ctx, q, ResizeArgs{URL: url, Width: 200})
//
// Put the kind and its two types into a package that producers and workers import. Arguments and results are
// JSON, so programs in other languages can take part. A []byte is passed unchanged.
//
// # Which call for what
//
//	enqueue one task                      Resize.Enqueue(ctx, q, args)
//	enqueue a list                        Resize.EnqueueAll(ctx, q, list)
//	set fields of a task                  Resize.With(queue.Task{Delay: time.Hour}).Enqueue(ctx, q, args)
//	enqueue under a name                  Resize.With(queue.Task{Name: "photo-17"}).Enqueue(ctx, q, args)
//	wait for a result, by id or name      Resize.Result(ctx, q, id), Resize.Result(ctx, q, q.IDOf("photo-17"))
//	enqueue one task and wait for it      Resize.Run(ctx, q, args)
//	run the tasks in a worker             Resize.Handle(w, handle)
//	run them as agents                    Research.HandleAgent(w, handle)
//	a child of an agent                   Resize.Schedule(a, args), then agentwait.Await and the like
//	a list of several kinds               Resize.Task(args) for each, then q.EnqueueAll
//
// # Defaults
//
// The defaults of a kind are stored in the namespace, so that they apply to tasks of all programs. The first
// Enqueue of a program stores them if the kind has none. So they apply to the first task, even if no worker has
// started yet. A worker stores them when it starts, and replaces the stored ones. So if a producer
// and a worker are built with different defaults, the worker's apply, and if two workers differ, the defaults of the
// worker that started last. A producer whose defaults do not apply logs a warning once. With the zero Defaults a program
// stores nothing.
package typed
