package operator

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// rounds is the number of times that a namespace is repaired and audited again. More than one is
// needed, because a repair can reveal further findings, such as a wrong number of running tasks once
// the claims are right.
const rounds = 3

func repair(c *cli.Context, q *queue.Queue, found []inspect.Finding) error {
	if c.Bool("dry-run") {
		plan, err := inspect.PlanRepair(c.Context, q, found)
		if err != nil {
			return err
		}
		var list []contradiction
		for _, r := range plan {
			list = append(list, remedied(r))
		}
		if err := printRemedies(c, list); err != nil {
			return err
		}
		return verdict(c, q, len(found), "finding", "findings")
	}
	if err := app.ConfirmMany(c, int64(len(found)), "finding", "repaired", "nothing was repaired"); err != nil {
		return err
	}
	list, remaining, err := repairAll(c, q, found)
	if printed := printRemedies(c, list); err != nil || printed != nil {
		if c.Context.Err() != nil {
			return app.Interrupted("%s repaired; run it again for the others", app.Plural(int64(len(list)), "place was", "places were"))
		}
		return errors.Join(err, printed)
	}
	return verdict(c, q, remaining, "finding is left", "findings are left")
}

// repairAll repairs and audits until nothing more can be repaired. It returns the repairs, followed
// by the remaining findings, and the number of the latter.
func repairAll(c *cli.Context, q *queue.Queue, found []inspect.Finding) (list []contradiction, left int, err error) {
	counter := app.NewCounter(c)
	defer counter.Clear()
	for range rounds {
		remedies, err := inspect.Repair(c.Context, q, found)
		if err != nil {
			return list, 0, err
		}
		previous := len(list)
		for _, r := range remedies {
			if r.Left == "" {
				list = append(list, remedied(r))
			}
		}
		counter.Show("repaired %s", app.Grouped(int64(len(list))))
		if found, err = inspect.Audit(c.Context, q); err != nil {
			return list, 0, err
		}
		if len(found) == 0 || len(list) == previous {
			break
		}
	}
	plan, err := inspect.PlanRepair(c.Context, q, found)
	for _, r := range plan {
		r.Does = nil
		if r.Left == "" {
			r.Left = "it changed during the repair: repair again"
		}
		list = append(list, remedied(r))
	}
	return list, len(found), err
}
