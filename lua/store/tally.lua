-- tally collects what a unit of work adds to the figures of kinds (store/figures.lua), and writes it. All that a unit
-- adds for one kind and queue costs one command if it is one field, and two if there are more.
--
-- @use store/add_figures
-- @use store/buckets
-- @use store/own
local tally = {}

-- of returns the table of what to add to the fields of a task's kind and queue.
function tally.of(tx, task)
  local kinds = own(tx, "tallies")
  local queues = kinds[task.kind]
  if not queues then
    queues = {}
    kinds[task.kind] = queues
  end
  local counts = queues[task.queue]
  if not counts then
    counts = {}
    queues[task.queue] = counts
  end
  return counts
end

-- add counts one event of a task in a field, whose name is given without the queue.
function tally.add(tx, task, field)
  if tx.root.figures then
    local counts = tally.of(tx, task)
    counts[field] = (counts[field] or 0) + 1
  end
end

-- of_node returns the table of what to add to the figures of the runs of a definition, and what fields of a node begin with.
-- The nodes of all queues are counted together, so the queue is "-".
function tally.of_node(tx, task)
  local definition, name = string.match(task.node, "^(%S+) %S+ (%S+)$")
  return tally.of(tx, {kind = "flow." .. definition, queue = "-"}), " node " .. name
end

-- timeout counts a timeout that ends no task, and how late it was written.
--
--   since  the instant of the limit
function tally.timeout(tx, task, field, timeout_type, since)
  if tx.root.figures then
    tally.add(tx, task, field)
    buckets.add(tally.of(tx, task), "lag", tx.at - since, 1, timeout_type)
  end
end

-- retried_node counts an attempt of a node that took too long and is followed by another one.
function tally.retried_node(tx, task)
  if tx.root.figures and task.node then
    local nodes, begins = tally.of_node(tx, task)
    local field = begins .. " retried timeout"
    nodes[field] = (nodes[field] or 0) + 1
  end
end

-- write adds the counts to the figures. A strict call stores all or raises an error. Its tasks are stored by now, so figures
-- that cannot be written are no error of that call.
function tally.write(tx)
  local before = #tx.failed
  for kind, queues in pairs(tx.tallies) do
    for queue, counts in pairs(queues) do
      add_figures(tx, kind, queue, counts)
    end
  end
  if tx.strict and #tx.failed > before then
    local failed = own(tx, "failed")
    for n = #failed, before + 1, -1 do
      failed[n] = nil
    end
  end
end
