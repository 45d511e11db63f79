package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Lacks returns the error for missing rights. words are the missing rules of ACL SETUSER, such as "+blpop".
func (e *Engine) Lacks(ctx context.Context, partition int, words []any) error {
	var commands, keys, channels []string
	for _, word := range e.surely(ctx, partition, words) {
		switch rule := Text(word); rule[:min(len(rule), 1)] {
		case "~":
			keys = append(keys, rule[1:])
		case "&":
			channels = append(channels, rule[1:])
		default:
			commands = append(commands, strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(rule, "+"), "|", " ")))
		}
	}
	var lacks, cure []string
	add := func(what, sign string, all, rules []string) {
		if len(all) > 0 {
			lacks = append(lacks, what+strings.Join(all, ", "))
			for _, rule := range rules {
				cure = append(cure, sign+rule)
			}
		}
	}
	rules := slices.Clone(commands)
	for i, command := range rules {
		rules[i] = strings.ToLower(strings.ReplaceAll(command, " ", "|"))
	}
	add("has no right to run ", "+", commands, rules)
	add("has no right to read and write the keys ", "~", keys, e.everywhere(partition, keys))
	add("has no right to use the channels ", "&", channels, e.everywhere(partition, channels))
	return fmt.Errorf("%w: %s %s: ACL SETUSER %s %s", refusal.ErrNoRight, e.user(), strings.Join(lacks, ", and "), e.user(), strings.Join(cure, " "))
}

// surely removes commands that the user may have after all. A script only learns that PUBLISH was
// refused, not whether the user lacks the command or the channel.
func (e *Engine) surely(ctx context.Context, partition int, words []any) []any {
	if !slices.ContainsFunc(words, func(word any) bool { return strings.HasPrefix(Text(word), "&") }) {
		return words
	}
	if err := e.rdb.Publish(ctx, e.EndedChannel(partition), "").Err(); !Denied(err) || lua.MayNotRun(err) {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), func(word any) bool { return word == "+publish" || word == "+subscribe" })
}

// everywhere returns the patterns that grant names in all partitions. For more than three names it returns the
// pattern of the whole namespace.
func (e *Engine) everywhere(partition int, names []string) []string {
	pattern := e.namespace + ":{*"
	if len(names) > 3 {
		return []string{pattern}
	}
	rules := slices.Clone(names)
	for i, name := range rules {
		rules[i] = pattern + "}" + strings.TrimPrefix(name, e.Root(partition))
	}
	return rules
}

// noPermission matches the errors of Redis and of our Lua about a missing right. The text of Redis 7.0 differs from
// later versions.
var noPermission = regexp.MustCompile(`NOPERM |The user executing the script can't|ACL failure in script`)

// Denied reports whether Redis refused a command because a right is missing.
func Denied(err error) bool { return lua.Raised(err) && noPermission.MatchString(innerText(err)) }

// noRight returns the error for a missing right, with the ACL SETUSER command that grants it.
func (e *Engine) noRight(partition int, err error) error {
	text, ours := innerText(err), e.everywhere(partition, []string{e.Root(partition) + "*"})[0]
	var rule string
	switch command := mayNotRun.FindStringSubmatch(text); {
	case lua.MayNotRun(err) && command != nil && lua.IsVerb(command[1]):
		rule = "+fcall +function|load, or +eval +evalsha" // both are refused
	case command != nil && command[1] != "":
		rule = "+" + strings.ToLower(command[1])
	case command != nil && (command[3] == "" || command[3] == e.Root(partition)):
		rule = "+" + strings.ToLower(command[2])
	case strings.Contains(text, "run this command or subcommand"):
		return &explained{refusal.ErrNoRight, fmt.Sprintf("%v: open the namespace again to learn which (%s)", refusal.ErrNoRight, clip.Line(text, 300)), err}
	case noChannel.MatchString(text):
		rule = "&" + ours
	default:
		rule = "~" + ours
	}
	return &explained{refusal.ErrNoRight, fmt.Sprintf("%v: ACL SETUSER %s %s (%s)", refusal.ErrNoRight, e.user(), rule, clip.Line(text, 300)), err}
}

// mayNotRun matches a command that the user has no right to run, as Redis and as lua/store/rights.lua name it. The latter
// names the root if the command is refused, and otherwise the key that is refused.
var mayNotRun = regexp.MustCompile(`to run the '([a-zA-Z|]+)'|may not run ([A-Z]+)(?: on (\S+):)?`)

// noChannel matches the errors about a channel. A name has no spaces, so it cannot look like one of them.
var noChannel = regexp.MustCompile(`to the channel |access (a|one of the|the '\S*') channel`)

// user returns the name with which the client signs in.
func (e *Engine) user() string {
	name := ""
	switch rdb := e.rdb.(type) {
	case *redis.Client:
		name = rdb.Options().Username
	case *redis.ClusterClient:
		name = rdb.Options().Username
	}
	if name == "" {
		return "default"
	}
	return name
}
