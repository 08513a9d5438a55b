-- An Application is as healthy as what it manages. Argo CD does not judge Applications by itself, and without a verdict the sync waves of an
-- app of apps do not wait for each other.
local health = {status = "Progressing", message = "Argo CD has not judged the Application yet."}
if obj.status ~= nil and obj.status.health ~= nil and obj.status.health.status ~= nil then
  health.status = obj.status.health.status
  health.message = obj.status.health.message
end
return health
