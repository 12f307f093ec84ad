package layout

import "fmt"

const (
	bridge = "bridge"
	uplink = "eth0"
	// bridgeMAC stays. Left alone, a bridge has the lowest address of what is plugged
	// in, so that nobody reached the control machine for half a minute after a node
	// was switched off.
	bridgeMAC = "02:00:00:00:00:01"
	// HostLink is the only interface the host gets. It is one end of a pair whose
	// other end belongs to the control machine, so it goes when that machine does.
	HostLink = "liken0"
)

// Command is one command line.
type Command []string

// OnBoot are the commands that a machine runs in its own network namespace once
// its cables are plugged in.
func (c Cluster) OnBoot(machine string) []Command {
	if machine != Control {
		return []Command{
			{"ip", "link", "set", "lo", "up"},
			{"ip", "address", "add", fmt.Sprintf("%s/24", c.Address(machine)), "dev", uplink},
			{"ip", "link", "set", uplink, "up"},
			{"ip", "route", "add", "default", "via", c.Address(Control).String()},
		}
	}
	commands := []Command{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", fmt.Sprintf("%s/32", c.APIService()), "dev", "lo"},
		{"ip", "link", "add", bridge, "address", bridgeMAC, "type", "bridge"},
		{"ip", "address", "add", fmt.Sprintf("%s/24", c.Address(Control)), "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
	}
	for _, node := range c.Nodes() {
		commands = append(commands, Command{"ip", "route", "add", c.Pods(node).String(), "via", c.Address(node).String()})
	}
	return commands
}

// PlugHost are the commands that connect the host with the control machine, whose
// process is pid. The bridge has to be there.
func (c Cluster) PlugHost(pid int) []Command {
	return []Command{
		{"ip", "link", "add", HostLink, "type", "veth", "peer", "name", "host", "netns", fmt.Sprint(pid)},
		inNetwork(pid, "ip", "link", "set", "host", "master", bridge, "up"),
		{"ip", "address", "add", fmt.Sprintf("%s/24", c.Host()), "dev", HostLink},
		{"ip", "link", "set", HostLink, "up"},
		{"ip", "route", "add", c.Network.String(), "via", c.Address(Control).String(), "src", c.Host().String()},
	}
}

// PlugNode are the commands that connect a node with the control machine's bridge.
func (c Cluster) PlugNode(node string, controlPID, nodePID int) []Command {
	return []Command{
		inNetwork(controlPID, "ip", "link", "add", "name", node, "type", "veth", "peer", "name", uplink, "netns", fmt.Sprint(nodePID)),
		inNetwork(controlPID, "ip", "link", "set", node, "master", bridge, "up"),
	}
}

// UnplugNode are the commands that take the node's end off the bridge. The kernel
// does so itself some time after the node ended; until then the name is taken.
func (c Cluster) UnplugNode(node string, controlPID int) []Command {
	return []Command{inNetwork(controlPID, "ip", "link", "delete", node)}
}

// inNetwork is a command run in the network of another process. The namespace of
// processes stays the caller's, by whose numbers ip finds the other end.
func inNetwork(pid int, command ...string) Command {
	return append(Command{"nsenter", "--net", "--target", fmt.Sprint(pid), "--"}, command...)
}
