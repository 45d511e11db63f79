package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// outcomeBody is how an attempt ended.
type outcomeBody struct {
	ID           string          `json:"id"`
	Epoch        int64           `json:"epoch"`
	Verb         string          `json:"verb"`
	Result       json.RawMessage `json:"result,omitempty"`
	ResultBase64 *string         `json:"result_base64,omitempty"`
	Error        *string         `json:"error,omitempty"`
	Retry        *bool           `json:"retry,omitempty"`
	Class        *string         `json:"class,omitempty"`
	Code         *int            `json:"code,omitempty"`
	Delay        *string         `json:"delay,omitempty"`
	DelayMs      *int64          `json:"delay_ms,omitempty"`
	Verdict      *string         `json:"verdict,omitempty"`
}

// mostOutcomes is how many outcomes a call of Redis takes.
const mostOutcomes = 500

func settleTasks(c *call) (any, error) {
	var body settleBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	outcomes, places, f := c.outcomes(&body)
	if f != nil {
		return nil, f
	}
	var ask *claim.Ask
	if body.Fetch != nil {
		wants, f := body.Fetch.read()
		if f != nil {
			return nil, within(f, "fetch")
		}
		ask = &wants
	}
	verdicts := make([]queue.Verdict, len(outcomes))
	var taken claim.Reply
	err := c.q.Engine().EachPartition(func(p int) error {
		if len(places[p]) == 0 {
			return nil
		}
		mine := make([]queue.Outcome, len(places[p]))
		for i, place := range places[p] {
			mine[i] = outcomes[place]
		}
		wants := claim.Ask{}
		if ask != nil && c.q.Partitions() == 1 {
			wants = *ask // in the same call of Redis
		}
		reply, err := claim.Of(c.q).Settle(c, p, c.path("worker"), body.Call, mine, wants)
		if err != nil {
			return err
		}
		c.warn(reply.Errors)
		for i, place := range places[p] {
			verdicts[place] = reply.Verdicts[i]
		}
		if wants.N > 0 {
			taken = reply
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := settledTasks{Outcomes: make([]settledLine, len(outcomes))}
	for i, v := range verdicts {
		answer.Outcomes[i] = verdictLine(outcomes[i].ID, v)
	}
	switch {
	case ask == nil:
	case len(taken.Claims) > 0 || taken.Stopping():
		answer.Fetch = c.fetched(*ask, taken)
	default:
		if answer.Fetch, err = c.fetch(*ask); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// outcomes reads the outcomes of a request, and which of them are in each partition.
func (c *call) outcomes(body *settleBody) (all []queue.Outcome, places [][]int, f *failure) {
	if n := len(body.Outcomes); n < 1 || n > mostOutcomes {
		return nil, nil, wrong("outcomes", "has %d outcomes: it must have 1 to %d", n, mostOutcomes)
	}
	if err := queue.CheckCall(body.Call); err != nil {
		return nil, nil, failureOf(err)
	}
	places = make([][]int, c.q.Partitions())
	for i := range body.Outcomes {
		at := "outcomes[" + strconv.Itoa(i) + "]"
		o, f := body.Outcomes[i].read(c.q.MaxBytes())
		if f != nil {
			return nil, nil, within(f, at)
		}
		p, f := placeOf(c.q, at+".id", o.ID)
		if f != nil {
			return nil, nil, f
		}
		all = append(all, o)
		places[p] = append(places[p], i)
	}
	if len(all) == 1 {
		c.task = all[0].ID
	}
	return all, places, nil
}

// read checks an outcome.
func (b *outcomeBody) read(maxBytes int) (o queue.Outcome, f *failure) {
	o = queue.Outcome{ID: b.ID, Epoch: b.Epoch, Verb: queue.Verb(b.Verb)}
	result, f := either("result", b.Result, b.ResultBase64, maxBytes)
	if f == nil {
		o.Delay, f = spanOf("delay", b.Delay, b.DelayMs, longestSpan)
	}
	if f == nil && b.Error != nil {
		f = contentTooLarge("error", len(*b.Error), maxBytes)
	}
	if f != nil {
		return o, f
	}
	present := map[string]bool{"result": b.Result != nil || b.ResultBase64 != nil, "error": b.Error != nil, "retry": b.Retry != nil, "class": b.Class != nil,
		"code": b.Code != nil, "delay": b.Delay != nil || b.DelayMs != nil, "verdict": b.Verdict != nil}
	members, ok := membersOf[o.Verb]
	if !ok {
		return o, wrong("verb", "must be complete, fail or release")
	}
	for name, set := range present {
		if set && !members[name] {
			return o, wrong(name, "means nothing for the verb %s", b.Verb)
		}
	}
	switch {
	case b.Epoch < 1:
		return o, wrong("epoch", "%d must be the number that fetch gave", b.Epoch)
	case o.Verb == queue.Fail && b.Error == nil:
		return o, wrong("error", "is missing: say in a text why the attempt failed")
	case o.Verb == queue.Release && b.Class != nil && *b.Class != string(queue.ClassNoHandler) && *b.Class != string(queue.ClassDiverged):
		return o, wrong("class", "of release must be no_handler or diverged")
	case b.Retry != nil && b.Class != nil:
		return o, wrong("retry", "and class exclude each other: give one of the two")
	}
	o.Result = result
	b.details(&o)
	return o, nil
}

var membersOf = map[queue.Verb]map[string]bool{
	queue.Complete: {"result": true},
	queue.Fail:     {"error": true, "retry": true, "class": true, "code": true, "delay": true, "verdict": true},
	queue.Release:  {"error": true, "class": true, "delay": true},
}

func (b *outcomeBody) details(o *queue.Outcome) {
	if b.Error != nil {
		o.Error = *b.Error
	}
	if b.Class != nil {
		o.Class = queue.Class(*b.Class)
	}
	if b.Retry != nil && !*b.Retry {
		o.Class = queue.ClassFailed
	}
	if b.Code != nil {
		o.Code = *b.Code
	}
	if b.Verdict != nil {
		o.Retry = *b.Verdict
	}
}

// verdictLine returns the answer for an outcome: the new status of its task, or why it was refused.
func verdictLine(id string, v queue.Verdict) settledLine {
	line := settledLine{ID: id, Status: v.Status}
	switch v.Word {
	case queue.VerdictOK:
	case queue.VerdictLost:
		line.Refused = &refusedLine{"lost", fmt.Sprintf("%s no longer belongs to this claim: it is %s. Drop the result", id, v.Status)}
	case queue.VerdictInvalid:
		line.Refused = &refusedLine{"invalid", v.Why}
	case queue.VerdictBroken:
		line.Refused = &refusedLine{"broken", "the record of " + id + " is damaged: an operator must repair it. Drop the result"}
	default:
		line.Refused = &refusedLine{"not_found", "there is no task " + id + ". Drop the result"}
	}
	return line
}
