package hostile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// hostile is a base with one thing wrong.
type hostile struct {
	what    string
	args    []string
	refused bool // the value has no documented meaning, so the call must be refused
	partly  bool // the call can act on the other elements of its list
}

// cases returns all hostile calls of a base.
func (b base) cases() []hostile {
	all := []hostile{
		{what: "no arguments"}, {what: "one fewer", args: b.args[:max(0, len(b.args)-1)]},
	}
	for _, v := range values {
		all = append(all, hostile{what: "one more: " + v.name, args: append(slices.Clone(b.args), v.text), partly: partly[b.call]})
	}
	for i, kind := range b.kinds {
		at := func(what string) string { return fmt.Sprintf("argument %d (%s, %.20q) %s", i+1, kind, b.args[i], what) }
		all = append(all, hostile{what: at("is missing"), args: slices.Delete(slices.Clone(b.args), i, i+1)},
			hostile{what: at("is repeated"), args: slices.Insert(slices.Clone(b.args), i, b.args[i]), partly: partly[b.call]})
		for _, v := range values {
			if anything[kind] && !few[v.name] {
				continue
			}
			args := slices.Clone(b.args)
			args[i] = v.text
			all = append(all, hostile{at("is " + v.name), args, !meaning(kind, v.text), partly[b.call]})
		}
	}
	return all
}

// For a kind that allows any bytes, a few values are enough.
var (
	anything = map[string]bool{"opaque": true, "reason": true, "about": true, "label": true, "line": true, "id": true, "epoch": true, "owner": true}
	few      = map[string]bool{"nothing": true, "1 MiB": true, "-0.5": true, "zero": true, "2^53+1": true, "binary": true, "a foreign id": true, "of two lines": true}
)

// partly has the calls that reply for each element of a list.
var partly = map[string]bool{"enqueue": true, "settle": true, "cancel": true, "resolve": true, "heartbeat": true, "delete": true}

// meaning reports whether an argument of a kind can have this value.
func meaning(kind, text string) bool {
	m, known := meanings[kind]
	if !known {
		panic("hostile: meanings has no kind " + kind)
	}
	return m(text)
}

// meanings are the values of each kind of argument, as documented in the headers of the calls.
var meanings = map[string]func(string) bool{
	// Any bytes; and ids and epochs, which can belong to no task: the reply then says so.
	"opaque": always, "id": always, "owner": always, "epoch": always,

	"word":     func(s string) bool { return len(s) <= 640 && wordOf.MatchString(s) },
	"queue":    func(s string) bool { return len(s) <= 128 && queueOf.MatchString(s) },
	"kindname": func(s string) bool { return len(s) <= 128 && kindOf.MatchString(s) },
	"hook":     func(s string) bool { return len(s) <= 128 && kindOf.MatchString(s) },
	"node":     func(s string) bool { return nodeOf.MatchString(s) },
	"signal":   func(s string) bool { return len(s) <= 128 && signalOf.MatchString(s) },
	"digest":   func(s string) bool { return s != "" && len(s) <= 1024 && !strings.ContainsAny(s, " \r\n\t") },
	"label":    func(s string) bool { return !strings.Contains(s, "\n") },
	"line":     func(s string) bool { return s != "" && len(s) <= 8192 && !strings.Contains(s, "\n") },
	"key":      func(s string) bool { return s != "" && len(s) <= 512 },
	"filter":   func(s string) bool { return s != "" },
	"score":    func(s string) bool { return s == "" || scoreOf.MatchString(s) },
	"reason":   func(s string) bool { return len(s) <= 8192 },
	"about":    func(s string) bool { return len(s) <= 4096 },
	"place":    func(s string) bool { return digitsOf.MatchString(s) && len(s) <= 41 },
	"from":     func(s string) bool { return s == "" || digitsOf.MatchString(strings.TrimPrefix(s, "-")) },
	"ancestor": func(s string) bool { return idOf.MatchString(s) },

	"whole":    whole,
	"most":     func(s string) bool { return s == "" || whole(s) },
	"lease":    func(s string) bool { return within(s, 1, 1<<52) },
	"beat":     func(s string) bool { return within(s, 0, 1<<52) },
	"span":     func(s string) bool { return s == "" || within(s, 1, 1e15-1) && s[0] != '0' },
	"limit":    func(s string) bool { return within(s, 1, 1e15-1) && s[0] != '0' },
	"entry":    func(s string) bool { return within(s, 1, 1e15-1) },
	"number":   func(s string) bool { return within(s, 1, 1e15-1) && s[0] != '0' },
	"parts":    func(s string) bool { return within(s, 1, 1e15-1) && s[0] != '0' },
	"digits":   func(s string) bool { return within(s, 0, 1e15-1) },
	"retries":  func(s string) bool { return within(s, 1, 1<<53) },
	"control":  func(s string) bool { return within(s, 1, 1<<53) },
	"switch":   func(s string) bool { return s == "" || within(s, 1, 1<<53) },
	"default":  func(s string) bool { return within(s, 1, 1<<52) },
	"attempts": func(s string) bool { return within(s, 0, 1<<53) },
	"until":    func(s string) bool { return within(s, 1, 1<<53) },
	"percent":  func(s string) bool { return within(s, 1, 99) },
	"jitter":   func(s string) bool { return within(s, 0, 100) },
	"priority": func(s string) bool { return within(s, 0, 3) },
	"attempt":  func(s string) bool { return within(s, 1, 1<<53) || s == "none" },
	"backoff":  func(s string) bool { return within(s, 0, 1<<53) || s == "none" },
	"code": func(s string) bool {
		return s == "" || len(s) <= 20 && digitsOf.MatchString(strings.TrimPrefix(s, "-"))
	},
	"delay":    func(s string) bool { return s == "" || within(s, 0, 1<<52) },
	"batch":    func(s string) bool { return within(s, 1, 1000) },
	"fallback": func(s string) bool { return within(s, 1, 1<<52) },
	"some":     func(s string) bool { return within(s, 1, 500) },
	"front":    func(s string) bool { return within(strings.TrimPrefix(s, "-"), 0, 1<<47) },
	"seq":      func(s string) bool { return within(s, 0, 1<<48) },
	"upto":     func(s string) bool { return within(s, 0, 500) },
	"workers":  func(s string) bool { return within(s, 1, 1000) },
	"events":   func(s string) bool { return within(s, 0, 10000) },
	"timeout":  func(s string) bool { return within(s, 1, 1<<53-1_800_000_000_000) || s == "none" }, // ends by 2^53

	// Of the functions for other languages.
	"never": never, "ownid": one("0-nobody"), "known": never, "headers": never, "whole1": one("1"), "mib": func(s string) bool { return within(s, 0, 65536) },
	"duration": one("none"), "delayspan": one("0"), "backoffspan": one("0", "none"), "leasespan": never, "beatspan": one("0"), "fallbackspan": never,
	"retention": func(s string) bool { return within(s, 0, 1<<53) || s == "none" },
	"namedword": func(s string) bool { return len(s) <= 128 && namedOf.MatchString(s) },
	"slots":     func(s string) bool { return within(s, 0, 500) },
	"whole52":   func(s string) bool { return within(s, 0, 1<<52) },
	"batch250":  func(s string) bool { return within(s, 1, 250) },
	"claims":    func(s string) bool { return strings.Trim(s, " ") == "" },
	"queues": func(s string) bool {
		words := strings.Fields(s)
		return len(words) > 0 && len(s) < 100 && !slices.ContainsFunc(words, func(w string) bool { return !queueAndQuotaOf.MatchString(w) })
	},

	"version": never, "partitions": one("0", "1"), "level": one("all", "terminal", "none"), "shape": never, "name": never,
	"outcomes": never, "count": never, "none": one("0"), "fields": one("007"), // then seven of the values that follow are fields
	"choice": never, "mode": one("", "all"), "mask": one(""), "verdict": one(""),
}

func always(string) bool { return true }

func never(string) bool { return false }

func one(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

func within(text string, least, most float64) bool {
	n, _ := strconv.ParseFloat(text, 64)
	return whole(text) && n >= least && n <= most
}
