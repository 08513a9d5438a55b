# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
"""Has TuneD's own code read profiles and match NICs; nothing is applied.

ask_tuned.py load DIRECTORY NAME: loads profile NAME from DIRECTORY and the distribution's profiles, creates the plugins
and their instances, and prints the merged units as JSON. A warning or an error of TuneD ends it with exit code 1.

ask_tuned.py match: reads a JSON list of {"expression", "properties"} and prints a list of booleans.
"""
import json
import logging
import sys

from tuned import hardware, monitors, plugins, profiles, storage
from tuned.plugins import plugin_service
from tuned.utils.global_config import GlobalConfig


class Complaints(logging.Handler):
    """Keeps what TuneD complains about."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def load(directory, name):
    variables = profiles.variables.Variables()
    loader = profiles.Loader(
        profiles.Locator(["/usr/lib/tuned", directory]),
        profiles.Factory(), profiles.Merger(), GlobalConfig(), variables)
    profile = loader.load(name)
    repository = plugins.Repository(
        monitors.Repository(), storage.Factory(storage.PickleProvider()), hardware.Inventory(set_receive_buffer_size=False),
        hardware.DeviceMatcher(), hardware.DeviceMatcherUdev(), plugins.instance.Factory(), GlobalConfig(), variables)
    units = {}
    for unit in profile.units.values():
        units[unit.name] = {
            "type": unit.type, "enabled": unit.enabled, "options": dict(unit.options),
            "devicesUdevRegex": unit.devices_udev_regex or "",
            "supported": create(repository, unit),
        }
    return units


def create(repository, unit):
    """Reports whether this machine can have the plugin; a parent profile may use some that it cannot."""
    try:
        plugin = repository.create(unit.type)
    except plugins.exceptions.NotSupportedPluginException:
        return False
    instance = plugin.create_instance(
        unit.name, unit.devices, unit.devices_udev_regex, unit.script_pre, unit.script_post, unit.options)
    if unit.type == "service":
        plugin.initialize_instance(instance)  # this is where the plugin parses its values; it starts nothing
    return True


def match(cases):
    class Device:
        def __init__(self, properties):
            self.properties = properties

    matcher = hardware.DeviceMatcherUdev()
    return [matcher.match(case["expression"], Device(case["properties"])) for case in cases]


def main():
    # A container in which tests run has no init system to detect; OpenShift's nodes have systemd.
    plugin_service.ServicePlugin._detect_init_system = lambda self: plugin_service.SystemdHandler()
    complaints = Complaints()
    logging.getLogger("tuned").addHandler(complaints)
    if sys.argv[1] == "match":
        result = match(json.load(sys.stdin))
    else:
        result = load(sys.argv[2], sys.argv[3])
    json.dump(result, sys.stdout)
    if complaints.texts:
        sys.exit("TuneD complains: " + "; ".join(complaints.texts))


main()
