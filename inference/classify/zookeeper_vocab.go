package classify

// zkOps are the types of requests and transactions (org.apache.zookeeper.ZooDefs.OpCode
// of 3.9.3, which holds all of 3.4.14 and 3.6.3).
var zkOps = map[int32]string{
	-11: "closeSession",
	-10: "createSession",
	-1:  "error",
	1:   "create",
	2:   "delete",
	3:   "exists",
	4:   "getData",
	5:   "setData",
	6:   "getACL",
	7:   "setACL",
	8:   "getChildren",
	9:   "sync",
	11:  "ping",
	12:  "getChildren2",
	13:  "check",
	14:  "multi",
	15:  "create2",
	16:  "reconfig",
	17:  "checkWatches",
	18:  "removeWatches",
	19:  "createContainer",
	20:  "deleteContainer",
	21:  "createTTL",
	22:  "multiRead",
	100: "auth",
	101: "setWatches",
	102: "sasl",
	103: "getEphemerals",
	104: "getAllChildrenNumber",
	105: "setWatches2",
	106: "addWatch",
	107: "whoAmI",
}

// zkErrors are the codes of replies (org.apache.zookeeper.KeeperException.Code).
var zkErrors = map[int32]string{
	-127: "THROTTLEDOP",
	-125: "QUOTAEXCEEDED",
	-124: "SESSIONCLOSEDREQUIRESASLAUTH",
	-123: "RECONFIGDISABLED",
	-122: "REQUESTTIMEOUT",
	-121: "NOWATCHER",
	-120: "EPHEMERALONLOCALSESSION",
	-119: "NOTREADONLY",
	-118: "SESSIONMOVED",
	-115: "AUTHFAILED",
	-114: "INVALIDACL",
	-113: "INVALIDCALLBACK",
	-112: "SESSIONEXPIRED",
	-111: "NOTEMPTY",
	-110: "NODEEXISTS",
	-108: "NOCHILDRENFOREPHEMERALS",
	-103: "BADVERSION",
	-102: "NOAUTH",
	-101: "NONODE",
	-100: "APIERROR",
	-14:  "RECONFIGINPROGRESS",
	-13:  "NEWCONFIGNOQUORUM",
	-12:  "UNKNOWNSESSION",
	-8:   "BADARGUMENTS",
	-7:   "OPERATIONTIMEOUT",
	-6:   "UNIMPLEMENTED",
	-5:   "MARSHALLINGERROR",
	-4:   "CONNECTIONLOSS",
	-3:   "DATAINCONSISTENCY",
	-2:   "RUNTIMEINCONSISTENCY",
	-1:   "SYSTEMERROR",
}

// zkEvents are the types of watch events (org.apache.zookeeper.Watcher.Event.EventType).
var zkEvents = map[int32]string{
	-1: "None",
	1:  "NodeCreated",
	2:  "NodeDeleted",
	3:  "NodeDataChanged",
	4:  "NodeChildrenChanged",
	5:  "DataWatchRemoved",
	6:  "ChildWatchRemoved",
	7:  "PersistentWatchRemoved",
}

// zkKeeperStates are the session states in watch events (Watcher.Event.KeeperState).
var zkKeeperStates = map[int32]string{
	-112: "Expired",
	-1:   "Unknown",
	0:    "Disconnected",
	1:    "NoSyncConnected",
	3:    "SyncConnected",
	4:    "AuthFailed",
	5:    "ConnectedReadOnly",
	6:    "SaslAuthenticated",
	7:    "Closed",
}

// zkZab are the types of packets between a leader and its learners
// (org.apache.zookeeper.server.quorum.Leader).
var zkZab = map[int32]string{
	1:  "REQUEST",
	2:  "PROPOSAL",
	3:  "ACK",
	4:  "COMMIT",
	5:  "PING",
	6:  "REVALIDATE",
	7:  "SYNC",
	8:  "INFORM",
	9:  "COMMITANDACTIVATE",
	10: "NEWLEADER",
	11: "FOLLOWERINFO",
	12: "UPTODATE",
	13: "DIFF",
	14: "TRUNC",
	15: "SNAP",
	16: "OBSERVERINFO",
	17: "LEADERINFO",
	18: "ACKEPOCH",
	19: "INFORMANDACTIVATE",
}

// zkServerStates are the states in election notifications
// (org.apache.zookeeper.server.quorum.QuorumPeer.ServerState, by ordinal).
var zkServerStates = []string{"LOOKING", "FOLLOWING", "LEADING", "OBSERVING"}

// zkWords are the four letter words (org.apache.zookeeper.server.command.FourLetterCommands;
// before 3.5 server.ServerCnxn).
var zkWords = words(`conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp wchs`)
