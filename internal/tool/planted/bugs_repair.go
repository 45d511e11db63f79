package main

// What a repair makes again from the records.
var repairBugs = []bug{
	{"a task that lost its place stays out of its line", "repair/repair_task.lua",
		`place(tx, id, task.queue, task.priority, task.woken and "woken" or nil)`, ``, "repair"},
	{"a task whose state is lost is put in line", "repair/repair_task.lua",
		`if is_lost(tx, task, held) then`, `if false then`, "repair"},
	{"a task that runs stays out of its worker's claims", "repair/repair_task.lua",
		`index.add(tx, tx.key.claims .. worker, string.format("%.1f", newest - 0.5), task.id)`, ``, "repair"},
	{"a worker that lost its lease gets none", "repair/mend.lua",
		`mend.must(tx, r, "workers", worker, tx.at + 60000)`, ``, "repair"},
	{"a wrong instant stays on its clock", "repair/mend.lua",
		`if score and there ~= tonumber(score) then`, `if score and not there then`, "repair"},
	{"an entry without a record stays", "repair/repair_task.lua",
		`    clear(tx, r, id)
    if held`, `    if held`, "repair"},
	{"a plan changes the namespace", "call/repair.lua",
		`if dry then
    return repair_all(tx, argv)
  end`, ``, "repair"},
	{"an agent stays at a wait that is damaged", "repair/repairs.lua",
		`return_claim(tx, task, false)
    return`, `return`, "repair"},
	{"the key of a live task stays lost", "repair/repair_task.lua",
		`idempotency.keep(tx, key, task.id, idempotency.digest(task.kind, text))`, ``, "repair"},
	{"a child stays out of its owner's list", "repair/repair_task.lua",
		`later.push(tx, tx.key.children .. task.owner, task.id)`, ``, "repair"},
}
