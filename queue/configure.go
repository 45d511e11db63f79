package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Settings are the settings of a namespace that can be changed while programs use it. [Config]
// describes the fields.
type Settings struct {
	Events   EventLevel
	EventMiB int
	Figures  string
	// DefaultTimeout is the Timeout of root tasks that have none of their own and of their kind, and no
	// Deadline. It counts from the earliest start. It is not for promises, timers and children. A task
	// with a Timeout of None has no limit. None removes the default.
	DefaultTimeout time.Duration
}

// Configure changes the settings of the namespace that are not zero. It makes a call to each partition. Each program
// uses the new settings of a partition from its next call on, without a restart: no program keeps a copy. A smaller
// EventMiB removes events when the next MiB of events has been written. Configure needs the rights of AccessProduce.
//
// If Configure returns the error of a call, some partitions can have the new settings already: call it again.
func (q *Queue) Configure(ctx context.Context, s Settings) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("configure", "", err)
	}
	if err := s.check(); err != nil {
		return refusal.Failed("configure", "", err)
	}
	var args []any
	if s.Events != "" {
		args = append(args, "events", string(s.Events))
	}
	if s.EventMiB != 0 {
		args = append(args, "event_mib", s.EventMiB)
	}
	if s.Figures != "" {
		args = append(args, "figures", s.Figures)
	}
	addSpan(func(name string, value any) { args = append(args, name, value) }, "default_timeout_ms", s.DefaultTimeout)
	if args == nil {
		return nil
	}
	for p := range q.Partitions() {
		words, err := engine.Words(q.engine.Call(ctx, p, "configure", args...))
		if err == nil && engine.Text(words[0]) != "OK" {
			err = engine.Unexpected("answer to configure", words)
		}
		if err != nil {
			return refusal.Failed("configure", "", partly(p, err))
		}
	}
	return nil
}

// partly adds to the error of a partition's call that the partitions before it are changed.
func partly(p int, err error) error {
	switch p {
	case 0:
		return err
	case 1:
		return fmt.Errorf("%w; partition 0 is changed already: make the call again", err)
	}
	return fmt.Errorf("%w; partitions 0 to %d are changed already: make the call again", err, p-1)
}

// check validates the settings. The zero value of a field is valid.
func (s Settings) check() error {
	switch s.Events {
	case "", EventsAll, EventsTerminal, EventsNone:
	default:
		return refusal.Invalid("events", "%q must be all, terminal or none", refusal.Clip(string(s.Events)))
	}
	if s.EventMiB < 0 || s.EventMiB > 65536 {
		return refusal.Invalid("event MiB", "%d must be 1 to 65536; 0 sets nothing", s.EventMiB)
	}
	if s.Figures != "" && s.Figures != "on" && s.Figures != "off" {
		return refusal.Invalid("figures", "%q must be on or off", refusal.Clip(s.Figures))
	}
	if d := s.DefaultTimeout; d != 0 && d != None && d < time.Millisecond {
		return refusal.Invalid("default timeout", "%v must be at least 1ms, or None", d)
	}
	return nil
}

// settings returns the part of the Config that the namespace stores.
func (c *Config) settings() Settings {
	return Settings{Events: c.Events, EventMiB: c.EventMiB, Figures: c.Figures}
}

// warnOfSettings logs a warning if Config has other settings than the namespace. words is the reply
// to open.
func (q *Queue) warnOfSettings(words []any) {
	if len(words) < 6 {
		return // a reply of an unexpected form is no reason to panic: see internal/engine/call.go
	}
	config, differences := q.config.settings(), []string{}
	compare := func(name, configured, stored string) {
		if configured != "" && configured != "0" && configured != stored {
			differences = append(differences, fmt.Sprintf("%s is %s, not %s", name, stored, configured))
		}
	}
	compare("events", string(config.Events), engine.Text(words[3]))
	compare("event_mib", fmt.Sprint(config.EventMiB), engine.Text(words[4]))
	compare("figures", config.Figures, engine.Text(words[5]))
	if len(differences) > 0 {
		q.config.Logger.Warn("The namespace has other settings than this program opens it with, and the former apply: change them with Queue.Configure or `curfew namespace set`",
			"namespace", q.config.Namespace, "settings", strings.Join(differences, "; "))
	}
}
