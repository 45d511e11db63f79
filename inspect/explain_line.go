package inspect

import (
	"fmt"
	"math"
	"strconv"
)

// explainLine adds the position of the task in its line, and the reason why the queue hands out no
// tasks, if any.
func (o *observed) explainLine(e *Explanation) {
	l := o.line()
	e.Line = l
	if o.facts["ahead"] != "" {
		l.Ahead = ms(o.facts, "ahead")
	} else {
		e.warn(WarnLost, "it is missing from the line of its queue, so no worker will get it: see Audit, or cancel it", o.id)
	}
	o.explainHold(e, l)
}

// line returns the line of the task's queue, without the place of the task.
func (o *observed) line() *ExplainedLine {
	return &ExplainedLine{
		Ahead: -1, Length: ms(o.facts, "lined"), Workers: ms(o.facts, "workers"),
		Running: ms(o.queue, "running"), MaxRunning: ms(o.queue, "max_running"), MaxLength: ms(o.queue, "max_length"),
	}
}

// explainHold warns if the controls of the queue keep its tasks back now.
func (o *observed) explainHold(e *Explanation, l *ExplainedLine) {
	free := o.freeAt()
	switch {
	case o.queue["paused"] != "":
		l.Hold = HoldPaused
		e.warn(WarnPaused, "the queue "+e.Queue+" is paused: resume it")
	case l.MaxRunning > 0 && l.Running >= l.MaxRunning:
		l.Hold = HoldFull
		e.warn(WarnFull, fmt.Sprintf("the queue %s is full: %d of its tasks run, and its maximum is %d, in this partition", e.Queue, l.Running, l.MaxRunning))
	case free > o.now:
		l.Hold, l.FreeAt = HoldThrottled, utc(free)
		e.warn(WarnThrottled, fmt.Sprintf("the queue %s has used up its rate: its next task can start at %s", e.Queue, clockText(l.FreeAt)))
	}
}

// freeAt returns the instant at which the rate of a queue allows the next task, 0 if it allows one
// now. The computation is the one of lua/queue/queue.lua.
func (o *observed) freeAt() int64 {
	rate, per, burst := ms(o.queue, "rate"), ms(o.queue, "per_ms"), ms(o.queue, "burst")
	if rate == 0 || per == 0 || burst == 0 {
		return 0
	}
	now, every := float64(o.now), float64(per)/float64(rate)
	capacity := float64(burst) * every
	full, _ := strconv.ParseFloat(o.queue["full_at"], 64)
	full = min(max(full, now), now+capacity)
	near := min(0.01, every/100)
	if math.Floor((capacity-(full-now)+near)/every) >= 1 {
		return 0
	}
	return int64(math.Ceil(full - capacity + every - near))
}
