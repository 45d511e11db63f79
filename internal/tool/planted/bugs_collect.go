package main

// Agents that collect the ends of their children.
var collectBugs = []bug{
	{"an end is handed over twice", "wait/ends.lua",
		`  later.drop(tx, key)
  for i = #names`, `  for i = #names`, "stories/collect_each_end_once"},
	{"the ends that a wait takes beyond 500 are lost", "wait/ends.lua",
		`later.before(tx, "LTRIM", key, most, -1)`, `later.drop(tx, key)`, "stories/collect_more_than_a_wait_takes"},
	{"an end of the same unit is lost", "wait/ends.lua",
		`  for _, name in ipairs(later.pushed(tx, key)) do`, `  for _, name in ipairs({}) do`, "stories/collect_each_end_once"},
	{"an end between two waits is lost", "task/finish.lua",
		`if owner and owner.collects then`, `if owner and owner.collects and owner.waiting then`, "stories/collect_each_end_once"},
	{"the ends stay after the end of the agent", "task/finish.lua",
		`  if task.collects then
    ends.forget(tx, task.id)
  end`, ``, "stories/collect_each_end_once"},
	{"the ends that were handed over are not counted", "wait/ends.lua",
		`tonumber(agent.collects) + #names`, `tonumber(agent.collects)`, "stories/collect_each_end_once"},
	{"an end before the agent collects is lost", "wait/ends.lua",
		`    ends.add(tx, agent.id, task)`, ``, "stories/collect_before_the_agent_waits"},
	{"an agent begins to collect twice", "wait/ends.lua",
		"  if agent.collects then\n    return\n  end", ``, "stories/collect_before_the_agent_waits"},
	{"an end does not wake an agent that collects", "agent/count.lua",
		`w.fired_at = math.max(at, w.since or 0)
    fire(tx, id)`, `w.fired_at = math.max(at, w.since or 0)`, "stories/collect_each_end_once"},
	{"an end after the limit is handed over", "agent/count.lua",
		`if first and not (w.ends and at > w.ends) then`, `if first then`, "stories/collect_limits"},
	{"an end at the limit is not handed over", "agent/count.lua",
		`at > w.ends`, `at >= w.ends`, "stories/collect_limits"},
	{"an agent that comes after the limit is given later ends", "agent/suspend.lua",
		` or too_late(tx, s, c, names)`, ``, "stories/collect_limits"},
	{"children that are due are not handed over", "agent/count.lua",
		`ipairs(end_due(tx, id, upto))`, `ipairs({})`, "stories/collect_with_the_ends_that_are_due"},
	{"an agent waits although a child is due", "agent/suspend.lua",
		`  end_due(tx, s.id, tx.at)`, ``, "stories/collect_with_the_ends_that_are_due"},
	{"an agent waits for ends that nobody keeps", "agent/note.lua",
		`if s.wait.mode == "collect" and`, `if false and`, "stories/collect_refused"},
	{"a wait for any child has members", "agent/rules.lua",
		`    if n > 0 then
      return nil, nil, nil, "mode", "is for all`, `    if false then
      return nil, nil, nil, "mode", "is for all`, "stories/collect_refused"},
}
