package main

// A unit of work: what belongs to it, and what it does when deciding raises.
var unitBugs = []bug{
	{"what one call was about to write the next one writes", "store/own.lua",
		`if mine == tx.none then`, `if false then`, "stories/settle_takes_the_next"},
	{"the second unit of a call does again what the first did", "store/unit.lua",
		`  if tx.stale then`, `  if false then`, "stories/settle_repeated_with_next"},
	{"a loser that cannot be decided on is its agent's fault", "wait/cancel_member.lua",
		`  tx.on = id --`, `  --`, "stories/wait_over_at_once_beside_a_loser_that_cannot_be_decided_on"},
	{"a loser that cannot be decided on keeps its agent from going on", "wait/find_settled.lua",
		`elseif not task and not tx.poison[m.id] then`, `elseif not task then`, "stories/suspend_over_at_once_beside_a_loser_that_cannot_be_decided_on"},
	{"a signal that cannot be decided on is nobody's fault", "call/signal.lua",
		`  tx.on = id`, ``, "stories/signal_that_cannot_be_decided_on"},
	{"a draft outlives the try that made it", "store/renew.lua",
		`tx.drafts = none`, ``, "stories/alarm_lost_when_decided_twice"},
	{"a repeated try tells twice", "store/renew.lua",
		`tx.wakes, tx.events, tx.stops, tx.ended, tx.lists, tx.drops = none, none, none, none, none, none`, `tx.wakes, tx.stops, tx.ended, tx.lists, tx.drops = none, none, none, none, none`, "stories/broken_is_told_once"},
	{"an agent that cannot be decided on is the fault of who ended", "wait/wake_agents.lua",
		`tx.may_wake, tx.on = tx.may_wake - 1, id`, `tx.may_wake = tx.may_wake - 1`, "stories/wake_of_an_agent_that_cannot_be_decided_on"},
	{"what is thrown away counts as ended", "store/unit.lua",
		`    tx.may_cancel, tx.may_wake = may_cancel, may_wake`, ``, "stories/wait_more_than_100_losers_and_one_that_cannot_be_decided_on"},
	{"a wait that has fired and lost a counter stops the sweep", "wait/read_wait.lua",
		`if w.state and not (`, `if w.state ~= "fired" and w.state and not (`, "stories/sweep_of_a_wait_without_counters"},
	{"why a record is broken begins with a line of Lua", "store/reason.lua",
		`return (string.gsub(text, "^@?[%a_<>]*: ?%d+: ", ""))`, `return text`, "words"},
	{"an agent whose wait is lost waits for ever", "wait/read_wait.lua",
		` and waits(tx, id) then`, ` and false then`, "stories/run_lost_wait"},
}
