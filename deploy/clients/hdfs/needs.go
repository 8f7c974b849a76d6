package main

import "netsplit/model"

// names are the needs of an operation on names: the client reaches the
// NameNode that serves, and this one the majority of its JournalNodes, for it
// answers when its edit is there (HDFS High Availability Using the Quorum
// Journal Manager: "edit log modifications must be written to a majority of
// JNs"). While an administrator moves the service from one NameNode to the
// other, both are needed.
func (c *cluster) names() []model.Need {
	serving := c.nns
	if a := c.active.Load(); a != nil {
		serving = []model.NodeID{*a}
	}
	needs := []model.Need{{Via: c.me, From: serving, Count: len(serving)}}
	if len(c.jns) > 0 {
		for _, nn := range serving {
			needs = append(needs, model.Need{Via: nn, From: c.jns, Count: len(c.jns)/2 + 1})
		}
	}
	return needs
}

// data are the needs of an operation on data: those of its names, and so many
// DataNodes that one with a copy of each block is among them whatever is cut
// off. A write takes the same: it goes on with other DataNodes than those that
// do not answer ("dfs.client.block.write.replace-datanode-on-failure").
func (c *cluster) data() []model.Need {
	needs := c.names()
	n := max(len(c.dns)-c.replication+1, 1)
	needs = append(needs, model.Need{Via: c.me, From: c.dns, Count: n})
	for _, nn := range needs[0].From {
		needs = append(needs, model.Need{Via: nn, From: c.dns, Count: n})
	}
	return needs
}

// here are the needs of an operation that has been shown to have all others: the
// client reaches a NameNode, and every DataNode.
func (c *cluster) here() []model.Need {
	return []model.Need{{Via: c.me, From: c.nns, Count: 1}, {Via: c.me, From: c.dns, Count: len(c.dns)}}
}
