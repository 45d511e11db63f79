-- is_run reports whether the tasks of a kind are whole runs of a flow: flow.<id>. Parts of runs (flow.<id>/<template>)
-- and the tasks that come with flows (flow/wait) are nodes of a run. The time of a run is the outermost of the three
-- layers, so a run that is out of time has the timeout_type workflow.
local function is_run(kind)
  return string.find(kind, "^flow%.[^/]+$") ~= nil
end
