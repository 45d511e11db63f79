package model

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// backOff as a delay means the task's own back-off.
const backOff = -1

type modelFailure struct {
	class                           queue.Class
	verdict, text, code, call, mark string
	since, delay                    int64
}

// again returns when a task whose attempt failed runs again, or 0 if it does not. If only the
// time is missing, why is "deadline".
func (m *model) again(t *modelTask, f modelFailure) (start int64, why string) {
	wanted := f.class == queue.ClassError
	if f.class == queue.ClassTimeout {
		wanted = t.given["on_timeout"] == "retry"
	} else if t.given["retry_expression"] != "" {
		wanted = f.verdict == "retry"
	}
	if !wanted || t.cancelled != 0 || t.retries >= t.ms("max_retries") {
		return 0, ""
	}
	start = f.since + f.delay
	if f.delay == backOff {
		start = f.since + t.backoff()
	}
	if t.final() != 0 && start > t.final() {
		return 0, "deadline"
	}
	return start, ""
}

// backoff returns the ms before the next attempt. The jitter depends only on the id and the retry,
// so the model can compute it.
func (t *modelTask) backoff() int64 {
	span := float64(t.ms("backoff_ms"))
	if t.given["backoff"] == "exponential" {
		for range t.retries {
			span *= 2
		}
	}
	most := 86_400_000.0
	if t.given["backoff_max_ms"] != "" {
		most = float64(t.ms("backoff_max_ms"))
	}
	span = min(span, most)
	if percent := t.given["jitter"]; percent != "" {
		sum := sha1.Sum(fmt.Appendf(nil, "%s:%d", t.id, t.retries))
		drawn, _ := strconv.ParseUint(hex.EncodeToString(sum[:4]), 16, 64)
		part := float64(drawn) / (1 << 32) * float64(t.ms("jitter")) / 100
		span = float64(span * (1 - part))
	}
	return int64(math.Floor(span))
}

// attemptFailed retries a task whose attempt failed, or ends it.
func (m *model) attemptFailed(t *modelTask, f modelFailure) {
	start, why := m.again(t, f)
	timeout := f.class == queue.ClassTimeout
	if f.code != "" {
		t.code = f.code
	}
	if f.text == "" && !timeout {
		f.text = "Task failed"
	}
	verdict := f.verdict
	if timeout {
		verdict = t.given["on_timeout"]
	}
	if verdict == "" && t.given["retry_expression"] != "" {
		verdict = "fail: nobody gave a verdict of the retry expression"
	}
	if text, ok := strings.CutPrefix(verdict, "fail: "); ok {
		t.retryError = text
	}
	if start == 0 {
		if f.call != "" {
			t.call = f.call
		}
		t.retryState = cmp.Or(why, t.retryState)
		if timeout {
			m.timeOut(t, f.since, "attempt")
		} else {
			m.end(t, modelEnding{status: queue.Failed, at: f.since, reason: string(f.class), failure: f.text})
		}
		return
	}
	t.retries++
	t.requeuedBy = cmp.Or(f.mark, t.requeuedBy)
	if timeout {
		m.emit("attempt_timed_out", t.id)
		m.count(t, "retried timeout", 1)
		m.value(t, "lag attempt", modelLags, m.now-f.since)
		t.lastError = "Task exceeded deadline"
	} else {
		m.emit("task_retried", t.id)
		t.lastError = f.text
	}
	m.requeue(t, start, false, 0)
}

// endAttempt makes a task whose attempt is over PENDING.
func (m *model) endAttempt(t *modelTask) {
	if t.wait != nil && (t.wait.ends != 0 || len(t.patience) > 0) { // its next attempt can come to the same wait
		t.note("until", t.wait.entry+" "+cmp.Or(zeroless(t.wait.ends), "none")+" "+t.wait.fields["digest"])
	}
	m.leave(t)
	t.status, t.worker, t.lostBy, t.limit = queue.Pending, "", "", 0
	t.attemptAt, t.lineAt, t.passedOn, t.woken = 0, 0, 0, false
}

// requeue makes a task PENDING again. If line is not 0, its time in line continues and is over at that instant.
func (m *model) requeue(t *modelTask, start int64, front bool, line int64) {
	m.endAttempt(t)
	if !front {
		t.losses = 0
	}
	if start > m.now {
		t.available = start
		if span := t.ms("queue_timeout_ms"); span != 0 && line == 0 {
			line = start + span
		}
		m.setLimit(t, line)
		return
	}
	t.readyAt = start
	m.ready(t, front, start, line)
}

// ready puts a task in line, until the instant line if that is not 0. Otherwise its limit counts from the instant since which it
// is ready.
func (m *model) ready(t *modelTask, front bool, since, line int64) {
	if t.woken {
		m.seq++
		t.place = m.seq - 1<<48 // agents that were woken come before all others, in the order they woke
	} else if front {
		m.front--
		t.place = m.front
	} else {
		m.seq++
		t.place = m.seq
	}
	instant := line
	if span := t.ms("queue_timeout_ms"); span != 0 && line == 0 {
		instant = since + span
	}
	if t.attemptAt != 0 && (instant == 0 || t.attemptAt <= instant) {
		instant = t.attemptAt // the attempt of a woken agent continues
	}
	m.setLimit(t, instant)
	m.woken[t.queue()] = true
	m.fresh[t.id] = true
}

// setLimit sets the limit of the line or attempt, unless the task ends before it.
func (m *model) setLimit(t *modelTask, instant int64) {
	final := t.final()
	t.limit = 0
	if final == 0 || instant < final {
		t.limit = instant
	}
}

func (m *model) giveBack(t *modelTask, blame bool) {
	switch {
	case t.cancelled != 0:
		m.endCancelled(t, m.now, t.cancelReason)
	case !blame:
		m.emit("task_released", t.id)
		m.requeue(t, m.now, true, 0)
	case t.losses == 3:
		t.losses++
		m.end(t, modelEnding{status: queue.Failed, at: m.now, reason: "lease_lost", failure: "worker lost"})
	default:
		m.emit("task_lease_lost", t.id)
		worker := t.worker
		t.losses++
		m.requeue(t, m.now, true, 0)
		t.lostBy = worker
	}
}
