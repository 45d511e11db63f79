package main

// The figures of tasks that ended.
var figureBugs = []bug{
	{"ends are not counted by kind", "store/commit.lua",
		`figures.write(tx)`, ``, "stories/figures_of_each_end"},
	{"an end is counted each time it is decided", "store/renew.lua",
		`tx.figures, tx.recounts = none, none`, `tx.recounts = none`, "stories/figures_once"},
	{"a figure loses its earlier value", "store/add_figures.lua",
		`(tonumber(old[i] or 0) or 0) + adds[i]`, `adds[i]`, "stories/figures_of_each_end"},
	{"a value at a bound is counted above it", "store/buckets.lua",
		`value > (bounds[at] or value)`, `value + 1 > (bounds[at] or math.huge)`, "stories/figures_of_time"},
	{"a task that ends in line is counted as running", "store/figures.lua",
		`task.status ~= "PENDING" or task.woken`, `true`, "stories/figures_of_time"},
	{"a delayed task waits since its creation", "sweep/sweep_delayed.lua",
		`record.set(tx, task, "ready_at", task.available_at)`, ``, "stories/figures_of_time"},
	{"a task that was put back waits since its creation", "task/put_back.lua",
		`record.set(tx, task, "ready_at", tx.now)`, ``, "model"},
	{"the number of kinds with figures has no limit", "store/add_figures.lua",
		`>= most_kinds then`, `>= 2 * most_kinds then`, "kinds"},
	{"a figures key of the wrong type stops the call", "store/add_figures.lua",
		`  local old = try(tx, "HMGET", key, unpack(fields))
  if`, `  local old = redis.call("HMGET", key, unpack(fields))
  if`, "stories/figures_in_the_way"},
	{"ends of two kinds are counted as one kind", "store/same_figures.lua",
		`a.kind == b.kind and`, ``, "stories/timed_out_together"},
	{"a task gets the state of the task that ended before it", "store/same_state.lua",
		`a.epoch ~= b.epoch or a.worker ~= b.worker or a.started_at ~= b.started_at or `, ``, "stories/timed_out_together"},
	{"an event has the duration of the event before it", "task/end_event.lua",
		`last.created_at == task.created_at and`, ``, "stories/timed_out_together"},
	{"a namespace without figures counts ends", "store/read_root.lua",
		`figures = values[9] ~= "off"`, `figures = true`, "stories/figures_off"},
}
