package audit

import "strings"

// cure is the remedy for a finding: the arguments of the call repair (lua/call/repair.lua), or advice for an operator
// if no record determines the right value.
type cure struct {
	what, where string
	advice      string
}

var (
	contradiction = cure{advice: "the record of a task contradicts itself: cancel the task, or delete it if it has ended"}
	unreadable    = cure{advice: "the record of a task cannot be read: restore its keys spec:ID and state:ID, or delete both and repair again"}
	oddKey        = cure{advice: "the key is not Curfew's or has the wrong type: rename or delete it, and repair again"}
	ownerLost     = cure{advice: "its owner is lost, and nothing says how that ended: cancel the task"}
	memberLost    = cure{advice: "a task that the agent waits for is lost: cancel the agent"}
	oddSetting    = cure{advice: "nothing else has the right value: set it again with curfew namespace set"}
	oddControl    = cure{advice: "nothing else has the right value: set it again with curfew queue limit or curfew queue pause"}
	halfRate      = cure{advice: "its rate is lost in part: set it again with curfew queue limit"}
)

// ofTask repairs the indexes of a task. where is a key in which it may be wrong.
func ofTask(where string) cure { return cure{what: "task", where: where} }

// ofWait gives an agent back, if it is still at the same wait.
func ofWait(t map[string]string) cure {
	return cure{what: "wait", where: t["epoch"] + " " + t["waiting"]}
}

// ofWaiting sets a queue's counters of waiting agents, each NAME=NUMBER, if no task of the queue has changed.
func ofWaiting(right []string, root, queue map[string]string) cure {
	words := []string{strings.Join(right, ",")}
	add := func(value string) {
		if value == "" {
			value = "-"
		}
		words = append(words, value)
	}
	add(root["seq"])
	add(root["front"])
	for _, name := range tallied {
		add(queue[name])
	}
	return cure{what: "waiting", where: strings.Join(words, " ")}
}
