package main

// Children and their owners.
var childBugs = []bug{
	{"a doomed child lives until it is drained", "include/ending.lua",
		`local ended = drains(k, prefix)`, `local ended = nil`, "stories"},
	{"a child is doomed by the next script only", "include/finish.lua",
		`write(k, "ZADD", k.draining, task.completed_at, task.id)`, `later(k, "ZADD", k.draining, task.id, task.completed_at)`, "stories"},
	{"an owner that ended in the same call dooms nobody", "include/finish.lua",
		`k.drained[task.id] = nil`, ``, "stories"},
	{"an owner that ended in the same call lives for its children", "include/finish.lua",
		`k.kin[task.id] = nil`, ``, "stories"},
	{"children are not drained", "sweep.lua",
		`take(k.draining, due, drained)`, ``, "stories"},
	{"the first batch of children is drained", "sweep.lua",
		`if #ids < k.chunk then`, `if true then`, "stories"},
	{"a child goes before its owner has read it", "include/finish.lua",
		"if not parent then\n    retain", "if true then\n    retain", "stories"},
	{"a child that ended before its owner is kept for ever", "sweep.lua",
		"elseif task.status and not redis.call(\"ZSCORE\", k.retained, child) then\n    retain(k, task, at)\n", "", "stories"},
	{"an owner goes before its children", "sweep.lua",
		`if drains(k, id) then`, `if false then`, "stories"},
	{"a child may outlast its owner", "include/admit.lua",
		`task["until"] = plan.bound`, ``, "stories"},
	{"an ended owner gets children", "include/consider.lua",
		`if not live(parent) then`, `if not parent.status then`, "stories"},
	{"an owner's children are not counted", "include/admit.lua",
		`redis.call("HINCRBY", k.task .. parent.id, "children", 1)`, ``, "stories"},
	{"children of a late owner are cancelled, not timed out", "include/ending.lua",
		`if not how[1] then`, `if true then`, "stories"},
	{"of equal instants a child's own decides", "include/consider.lua",
		`deadline < tonumber(bound)`, `deadline <= tonumber(bound)`, "stories"},
	{"a late owner gets children", "include/consider.lua",
		`parent = overdue(k, id, at)`, `parent = record(k, id)`, "stories"},
	{"a grandchild is bound by its owner's deadline alone", "include/consider.lua",
		`bound = parent["until"] or parent.deadline_at`, `bound = parent.deadline_at`, "stories"},
}

// What producers hand over.
var enqueueBugs = []bug{
	{"a repeated enqueue makes the task anew", "include/known.lua",
		`if k.perhaps and redis.call("EXISTS", k.task .. task.id) == 1 then`, `if false then`, "stories"},
	{"an id that is taken is given away", "include/known.lua",
		` and payload == (task.payload or "")`, ``, "stories"},
	{"an id twice in a list is two tasks", "include/handed.lua",
		`perhaps = perhaps or twice[id]`, ``, "stories"},
	{"the default of a kind beats what the call says", "include/fill.lua",
		`if task[name] == nil and`, `if`, "stories"},
	{"a task is accepted after its deadline", "include/consider.lua",
		`elseif deadline and deadline < at then`, `elseif false then`, "stories"},
	{"a task is accepted that starts after its deadline", "include/consider.lua",
		`elseif deadline and start and start > deadline then`, `elseif false then`, "stories"},
	{"a delayed task stands in line at once", "include/create.lua",
		`elseif not task.role then`, "end\n  if not task.role then", "stories"},
}

// Idempotency keys.
var keyBugs = []bug{
	{"a key stands for any content", "include/known.lua",
		`elseif digest ~= redis.sha1hex(`, `elseif false and digest ~= redis.sha1hex(`, "stories"},
	{"a key goes with its record", "include/retain.lua",
		`math.max(goes, at + 86400000)`, `goes`, "stories"},
	{"a key is free at the start whatever its scope", "include/claim.lua",
		`task.idempotency_scope == "started" and`, `task.idempotency_scope and`, "stories"},
	{"a key of scope started is kept past the start", "include/claim.lua",
		`if task.idempotency_scope == "started" and task.epoch == "1" then`, `if false then`, "stories"},
	{"a key is freed again at the second start", "include/claim.lua",
		`task.idempotency_scope == "started" and task.epoch == "1"`, `task.idempotency_scope == "started"`, "stories"},
	{"a key of scope finished is never free", "include/retain.lua",
		`elseif scope == "finished" or not task.epoch then`, `elseif not task.epoch then`, "stories"},
	{"a key of scope started is never free without a start", "include/retain.lua",
		`elseif scope == "finished" or not task.epoch then`, `elseif scope == "finished" then`, "stories"},
	{"the end of another task frees a key", "include/retain.lua",
		`elseif scope == "finished" or not task.epoch then`, `else`, "stories"},
	{"a key holds until a reaper has forgotten it", "include/known.lua",
		`if forgotten and forgotten <= at then`, `if false then`, "stories"},
	{"a key that was taken again is forgotten early", "include/known.lua",
		"redis.call(\"HDEL\", k.idem, key)\n    redis.call(\"ZREM\", k.forget, key)", "redis.call(\"HDEL\", k.idem, key)", "stories"},
	{"a late task holds its key", "include/known.lua",
		"local task = overdue(k, id, at)\n  if task.status and not live(task) and redis", "local task = record(k, id)\n  if task.status and not live(task) and redis", "stories"},
	{"a window shorter than the task is accepted", "include/consider.lua",
		`if window and deadline and at + window < deadline then`, `if false then`, "stories"},
}

// Hooks.
var hookBugs = []bug{
	{"a hook runs for a retried attempt", "include/attempt_failed.lua",
		`remember("retries", task.retries)`,
		`remember("retries", task.retries)
  if task.hook_failure then
    hook(k, task, "failure", task.hook_failure, at)
  end`, "stories"},
	{"a hook runs twice", "include/finish.lua",
		`hook(k, task, "success", task.hook_success, at)`,
		`hook(k, task, "success", task.hook_success, at)
      hook(k, task, "done", task.hook_success, at)`, "stories"},
	{"a hook is told another event", "include/finish.lua",
		`hook(k, task, "cancel", task.hook_cancel, at)`, `hook(k, task, "failure", task.hook_cancel, at)`, "stories"},
	{"a timeout is a failure to hooks", "include/finish.lua",
		`elseif task.timed_out and task.hook_timeout then`, `elseif false then`, "stories"},
	{"who has no hook for timeouts is told nothing", "include/finish.lua",
		`elseif task.hook_failure then`, `elseif task.hook_failure and not task.timed_out then`, "stories"},
	{"a child's hook is doomed by the child's owner", "include/ending.lua",
		`dot = string.find(task.id, ".", bang or 1, true)`, ``, "stories"},
	{"a hook has no deadline", "include/hook.lua",
		`own.deadline_at = string.format("%d", at + (tonumber(own.timeout_ms) or 300000))`, ``, "stories"},
	{"a hook has no defaults of its kind", "include/hook.lua",
		`own[name] = value`, ``, "stories"},
	{"a hook is handed no JSON", "include/hook.lua",
		`cjson.encode(value)`, `'"' .. value .. '"'`, "stories"},
}

// Promises and timers.
var promiseBugs = []bug{
	{"a promise stands in line", "include/create.lua",
		`elseif not task.role then`, `else`, "stories"},
	{"a settled promise is settled again", "resolve.lua",
		`elseif not live(task) then`, `elseif task.status == "CANCELLED" then`, "stories"},
	{"a repeated resolve is refused", "resolve.lua",
		`if task.call == call then`, `if false then`, "stories"},
	{"anybody settles a worker's task", "resolve.lua",
		`elseif not task.role then`, `elseif false then`, "stories"},
	{"a late timer times out", "include/ending.lua",
		`(not first or fires < first or fires == first and kind ~= "ancestor")`, `not first`, "stories"},
	{"a timer fires at its owner's end", "include/ending.lua",
		`fires == first and kind ~= "ancestor"`, `fires == first`, "stories"},
	{"a late promise is settled", "resolve.lua",
		`local task = overdue(k, id, at)`, `local task = record(k, id)`, "stories"},
}
