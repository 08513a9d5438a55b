-- Follows the conditions by which kstatus goes, too: Ready is True only when each node has passed and its result is fresh. What cannot be
-- judged yet is awaited: nodes that gave no result are measured again.
local health = {status = "Progressing", message = "The operator has not reported on the current spec yet."}
if obj.status == nil or obj.status.conditions == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end
local ready, degraded = conditions.Ready, conditions.Degraded
if degraded ~= nil and degraded.status == "True" then
  health.status, health.message = "Degraded", degraded.message
elseif ready ~= nil and ready.status == "True" then
  health.status, health.message = "Healthy", ready.message
elseif ready ~= nil then
  health.message = ready.message
end
return health
