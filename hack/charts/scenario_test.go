package charts

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// observed is what the alerts and the dashboard of a chart are tried on.
type observed struct {
	// recorded are the scrapes of the real driver that its own tests record, by name.
	recorded map[string]string
	// firing are the alerts that fire over recordings, whose names have a blank between.
	firing map[string][]string
	// scenarios are what no recording shows: what takes hours, and what must not fire.
	scenarios []scenario
}

type scenario struct {
	name string
	// series are as written takes them.
	series string
	// firing are the alerts at the end. That no plugin is there at all counts only where
	// it is named.
	firing []string
}

// upOf is Prometheus's own series of a target.
func upOf(target map[string]string) labels.Labels {
	return labels.FromMap(with(target, map[string]string{labels.MetricName: "up"}))
}

func observedOfPerNode() observed {
	const on = `{job="per-node/pernode",instance="a",node="a",pod="p"}`
	return observed{
		recorded: map[string]string{
			"healthy": "../../pernode/cmd/pernode/testdata/healthy.prom",
			"faulty":  "../../pernode/cmd/pernode/testdata/faulty.prom",
		},
		firing: map[string][]string{
			"healthy": nil,
			"healthy faulty": {
				"PerNodeEventsDropped node=faulty", "PerNodeMountFailing reason=PerNodeMountFailed",
				"PerNodeStoreNearlyFull node=faulty", "PerNodeSweepFailing node=faulty", "PerNodeVolumeHeld reason=PerNodeVolumeHeld",
			},
		},
		scenarios: []scenario{
			{"no plugin", "", []string{"PerNodeAbsent"}},
			{"a plugin that is gone", "up" + on + " 1x30 0x10", []string{"PerNodePluginDown node=a"}},
			{"a plugin that is updated", "up" + on + " 1x30 0x5", nil},
			{"sweeps", "per_node_build_info" + on + " 1x300\nper_node_last_sweep_timestamp_seconds" + on + " 0+60x300", nil},
			{
				"a sweep that does not end",
				"per_node_build_info" + on + " 1x300\nper_node_sweep_failures_total" + on + " 0x300\n" +
					"per_node_last_sweep_timestamp_seconds" + on + " 0+60x100 6000x200",
				[]string{"PerNodeNotSweeping node=a"},
			},
			{"a first sweep that does not end", "per_node_build_info" + on + " 1x300", []string{"PerNodeNotSweeping node=a"}},
			{"a plugin that has just started", "per_node_build_info" + on + " 1x60", nil},
			{
				"sweeps that fail for long",
				"per_node_build_info" + on + " 1x300\nper_node_sweep_failures_total" + on + " 0x60 0+0.1x240\n" +
					"per_node_last_sweep_timestamp_seconds" + on + " 6000x300",
				[]string{"PerNodeSweepFailing node=a"},
			},
			{
				"a disk that fills up",
				"per_node_store_capacity_bytes" + on + " 10000000000x500\nper_node_store_available_bytes" + on + " 5000000000-5000000x500",
				[]string{"PerNodeStoreFillingUp node=a"},
			},
			{
				"a disk that fills up slowly",
				"per_node_store_capacity_bytes" + on + " 10000000000x500\nper_node_store_available_bytes" + on + " 5000000000-100000x500", nil,
			},
			{
				"a disk that fills up and is nearly full",
				"per_node_store_capacity_bytes" + on + " 10000000000x500\nper_node_store_available_bytes" + on + " 3000000000-5500000x500",
				[]string{"PerNodeStoreNearlyFull node=a"},
			},
			{
				"a pod that takes over from another",
				`per_node_publish_refusals_total{job="per-node/pernode",instance="a",node="a",reason="PerNodeVolumeHeld"} 0 1 2 3x30`, nil,
			},
		},
	}
}

func observedOfGit() observed {
	return observed{
		recorded: map[string]string{
			"healthy":    "../../gitvolume/cmd/gitvolume/nodetest/testdata/healthy.prom",
			"faulty":     "../../gitvolume/cmd/gitvolume/nodetest/testdata/faulty.prom",
			"volatile":   "../../gitvolume/cmd/gitvolume/nodetest/testdata/volatile.prom",
			"controller": "../../gitvolume/cmd/gitvolume/nodetest/testdata/controller.prom",
		},
		firing: map[string][]string{
			"healthy": {"GitVolumeControllerAbsent component=controller"},
			"faulty healthy": {
				"GitVolumeControllerAbsent component=controller",
				"GitVolumeAbnormal claim=gone", "GitVolumeDiverged claim=diverged", "GitVolumeEventsDropped node=faulty",
				"GitVolumeFetchFailing repo=git.example.com/shop/gone.git", "GitVolumeFilesSkipped claim=skipped",
				"GitVolumeMountFailing grpc_status_code=InvalidArgument", "GitVolumeNotArmed claim=pending",
				"GitVolumePushFailing claim=failing", "GitVolumeWatchDegraded claim=degraded",
			},
			"volatile": {
				"GitVolumeControllerAbsent component=controller", "GitVolumeStoreNearlyFull node=volatile", "GitVolumeStoreRefusesWriteable node=volatile",
			},
			"healthy controller": {"GitVolumeWebhookFailing"},
		},
		scenarios: slices.Concat(scenariosOfPushes(), scenariosOfStores(), scenariosOfGit()),
	}
}

// gitSeries are series of one volume, each given as "armed 1x60".
func gitSeries(lines ...string) string {
	var all strings.Builder
	for _, line := range lines {
		name, values, _ := strings.Cut(line, " ")
		volume := ""
		if name == "volume_abnormal" {
			volume = `,volume="v"`
		}
		all.WriteString("git_csi_" + name + `{job="gitvolume/gitvolume-node",instance="a",node="a",namespace="shop",claim="c"` + volume + "} " + values + "\n")
	}
	return all.String()
}

func scenariosOfPushes() []scenario {
	flapping := strings.Repeat("0 1 ", 60) + "1"
	return []scenario{
		{"a busy volume", gitSeries("unpushed_commits "+flapping, "push_failures_total 0x121", "volume_abnormal "+flapping, "armed 1x121", "pending_paths 3x121"), nil},
		{
			"a push that waits", gitSeries("unpushed_commits 2x90", "push_failures_total 0x90", "volume_abnormal 1x90"),
			[]string{"GitVolumeUnpushedTooLong claim=c"},
		},
		{"a push that waits for a while", gitSeries("unpushed_commits 0x40 2x50", "push_failures_total 0x90", "volume_abnormal 0x40 1x50"), nil},
		{
			"pushes that fail every 5 minutes", gitSeries("unpushed_commits 2x90", "push_failures_total 0+0.2x90", "volume_abnormal 1x90"),
			[]string{"GitVolumePushFailing claim=c"},
		},
		{
			"a remote that was away for 10 minutes",
			gitSeries("unpushed_commits 0x9 1x9 0x20", "push_failures_total 0x9 1 2 3 4x2 5x25", "volume_abnormal 0x9 1x9 0x20"), nil,
		},
		{
			"another fault of a volume that pushes", gitSeries("unpushed_commits "+flapping, "push_failures_total 0x121", "volume_abnormal 1x121"),
			[]string{"GitVolumeAbnormal claim=c"},
		},
		{"a fault that passes", gitSeries("volume_abnormal 0x30 1x10"), nil},
		{
			"a volume that diverged, with writes on their way", gitSeries("unpushed_commits "+flapping, "diverged 1x121", "volume_abnormal 1x121", "armed 1x121"),
			[]string{"GitVolumeDiverged claim=c"},
		},
	}
}

// gitPlugin are the labels of the plugin on the node a.
const gitPlugin = `{job="gitvolume/gitvolume-node",instance="a",node="a",pod="p"}`

// gitDisk are the series of a disk of 10 GB on which the store is.
func gitDisk(available string) string {
	return "git_csi_store_capacity_bytes" + gitPlugin + " 10000000000x500\ngit_csi_store_available_bytes" + gitPlugin + " " + available
}

func scenariosOfStores() []scenario {
	return []scenario{
		{"a disk that fills up", gitDisk("5000000000-5000000x500"), []string{"GitVolumeStoreFillingUp node=a"}},
		{"a disk that fills up slowly", gitDisk("5000000000-100000x500"), nil},
		{"a disk that fills up and is nearly full", gitDisk("3000000000-5500000x500"), []string{"GitVolumeStoreNearlyFull node=a"}},
		{"a store that grows fast", "git_csi_store_bytes" + gitPlugin + " 1000000000+12000000x1400", []string{"GitVolumeStoreGrowing node=a"}},
		{"a store that grows", "git_csi_store_bytes" + gitPlugin + " 1000000000+1000000x1400", nil},
	}
}

func scenariosOfGit() []scenario {
	const controller = `{job="gitvolume/gitvolume-controller",instance="b",container="resizer",pod="p"}`
	failing := func(node, values string) string {
		return `git_csi_fetch_failures_total{job="gitvolume/gitvolume-node",instance="` + node + `",node="` + node + `",repo="h/r"} ` + values + "\n"
	}
	return []scenario{
		{"no plugin", "", []string{"GitVolumeAbsent component=node", "GitVolumeControllerAbsent component=controller"}},
		{"a plugin that is gone", "up" + gitPlugin + " 1x30 0x10", []string{"GitVolumePluginDown node=a"}},
		{"a controller that is gone", "up" + controller + " 1x30 0x10", []string{"GitVolumeControllerDown"}},
		{"plugin and controller that are updated", "up" + controller + " 1x30 0x5\nup" + gitPlugin + " 1x30 0x5", nil},
		{
			"an inline volume", `git_csi_volume_abnormal{job="j",instance="a",namespace="shop",claim="",volume="data"} 1x30`,
			[]string{"GitVolumeAbnormal volume=data"},
		},
		{
			"a repository that three nodes cannot fetch", failing("a", "0+0.2x60") + failing("b", "0+0.2x60") + failing("c", "0+0.2x60"),
			[]string{"GitVolumeFetchFailing repo=h/r"},
		},
		{"a fetch that failed", failing("a", "0x30 1x20"), nil},
		{"a watch that misses an event", gitSeries("watch_degraded 0x60 1x50"), nil},
		{
			"a mount that failed once",
			`csi_plugin_operations_seconds_count{job="j",instance="a",driver_name="git.liken.sh",method_name="/csi.v1.Node/NodePublishVolume",grpc_status_code="NotFound"} 0x20 1x20`, nil,
		},
		{
			"a fetch that takes long",
			`csi_plugin_operations_seconds_count{job="j",instance="a",driver_name="git.liken.sh",method_name="/csi.v1.Node/NodePublishVolume",grpc_status_code="Aborted"} 0+1x40`, nil,
		},
	}
}
