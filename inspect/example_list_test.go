package inspect_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// List returns the tasks that match a filter, page by page.
func ExampleList() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	for _, kind := range []string{"mail", "render", "mail"} {
		if _, err := q.Enqueue(ctx, queue.Task{Kind: kind}); err != nil {
			log.Fatal(err)
		}
	}
	pending := inspect.Filter{Kind: "mail", Statuses: []queue.Status{queue.Pending}}
	for page := ""; ; {
		got, err := inspect.List(ctx, q, pending, page, 100)
		if err != nil {
			log.Fatal(err)
		}
		for _, task := range got.Lines {
			fmt.Println(task.Kind, task.Status, task.Index, task.Of)
		}
		if page = got.Next; page == "" {
			break
		}
	}
	// Output:
	// mail PENDING ready default
	// mail PENDING ready default
}

// Each lists all tasks that match a filter in pages of up to 500, which is what a call takes: here it
// cancels them.
func ExampleEach() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	if _, err := q.EnqueueAll(ctx, slices.Repeat([]queue.Task{{Kind: "mail"}}, 1200)); err != nil {
		log.Fatal(err)
	}
	cancelled := 0
	live := inspect.Filter{Kind: "mail", Statuses: []queue.Status{queue.Pending, queue.Running, queue.Waiting}}
	err := inspect.Each(ctx, q, live, func(page inspect.ListPage) error {
		var ids []string
		for _, task := range page.Lines {
			ids = append(ids, task.ID)
		}
		done, err := q.CancelAll(ctx, ids, "wrong address")
		cancelled += len(done)
		return err
	})
	fmt.Println(cancelled, err)
	// Output: 1200 <nil>
}

// OldestWaiting returns, for each queue with tasks in line, the one that has been there for the longest time.
func ExampleOldestWaiting() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	first, err := q.Enqueue(ctx, queue.Task{Kind: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "mail", Priority: 3}); err != nil {
		log.Fatal(err)
	}
	list, err := inspect.OldestWaiting(ctx, q)
	if err != nil {
		log.Fatal(err)
	}
	for _, oldest := range list {
		fmt.Println(oldest.Queue, oldest.ID == first.ID, oldest.Wait < time.Minute)
	}
	// Output: default true true
}

// Remove the records of tasks that ended more than an hour ago, and then those of all ended tasks.
func ExamplePurge() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	r, err := q.Enqueue(ctx, queue.Task{Kind: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Cancel(ctx, r.ID, "wrong address"); err != nil {
		log.Fatal(err)
	}
	old, err := inspect.Purge(ctx, q, inspect.Filter{Kind: "mail", Before: time.Now().Add(-time.Hour)})
	fmt.Printf("%+v %v\n", old, err)
	all, err := inspect.Purge(ctx, q, inspect.Filter{Kind: "mail"})
	fmt.Printf("%+v %v\n", all, err)
	// Output:
	// {Removed:0 Later:0 Kept:0} <nil>
	// {Removed:0 Later:1 Kept:0} <nil>
}
