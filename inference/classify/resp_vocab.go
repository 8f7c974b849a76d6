package classify

import "strings"

// respCommands are the commands of Redis 7.0 and its Sentinel, as COMMAND LIST
// prints them, with those added up to 8.0.
var respCommands = words(`
acl append asking auth bgrewriteaof bgsave bitcount bitfield bitfield_ro bitop bitpos blmove blmpop
blpop brpop brpoplpush bzmpop bzpopmax bzpopmin client cluster command config copy dbsize debug decr
decrby del discard dump echo eval eval_ro evalsha evalsha_ro exec exists expire expireat expiretime
failover fcall fcall_ro flushall flushdb function geoadd geodist geohash geopos georadius
georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore get getbit getdel getex
getrange getset hdel hello hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hincrby
hincrbyfloat hkeys hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime hpttl hrandfield hscan
hset hsetex hsetnx hstrlen httl hvals incr incrby incrbyfloat info keys lastsave latency lcs lindex
linsert llen lmove lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim memory mget migrate
module monitor move mset msetnx multi object persist pexpire pexpireat pexpiretime pfadd pfcount
pfdebug pfmerge pfselftest ping psetex psubscribe psync pttl publish pubsub punsubscribe quit
randomkey readonly readwrite rename renamenx replconf replicaof reset restore restore-asking role
rpop rpoplpush rpush rpushx sadd save scan scard script sdiff sdiffstore select sentinel set setbit
setex setnx setrange shutdown sinter sintercard sinterstore sismember slaveof slowlog smembers
smismember smove sort sort_ro spop spublish srandmember srem sscan ssubscribe strlen subscribe
substr sunion sunionstore sunsubscribe swapdb sync time touch ttl type unlink unsubscribe unwatch
wait waitaof watch xack xackdel xadd xautoclaim xclaim xdel xdelex xgroup xinfo xlen xpending xrange
xread xreadgroup xrevrange xsetid xtrim zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard
zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore
zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex
zrevrangebyscore zrevrank zscan zscore zunion zunionstore
`)

// respSubcommands are, by command, the first arguments that belong to the
// protocol: subcommands as COMMAND LIST prints them, and the options of
// REPLCONF, PSYNC and REPLICAOF that replication.c of Redis 7.0 knows.
var respSubcommands = map[string]map[string]bool{
	"ACL": words(`cat deluser dryrun genpass getuser help list load log save setuser users whoami`),
	"CLIENT": words(`caching getname getredir help id info kill list no-evict no-touch pause reply setinfo setname
tracking trackinginfo unblock unpause`),
	"CLUSTER": words(`addslots addslotsrange bumpepoch count-failure-reports countkeysinslot delslots delslotsrange
failover flushslots forget getkeysinslot help info keyslot links meet myid myshardid nodes
replicas replicate reset saveconfig set-config-epoch setslot shards slaves slot-stats slots`),
	"COMMAND": words(`count docs getkeys getkeysandflags help info list`),
	"CONFIG":  words(`get help resetstat rewrite set`),
	"DEBUG": words(`change-repl-id crash-and-recover jmap loadaof object panic quicklist-packed-threshold reload
restart sdslen segfault set-active-expire sleep`),
	"FAILOVER":  words(`abort to`),
	"FUNCTION":  words(`delete dump flush help kill list load restore stats`),
	"LATENCY":   words(`doctor graph help histogram history latest reset`),
	"MEMORY":    words(`doctor help malloc-stats purge stats usage`),
	"MODULE":    words(`help list load loadex unload`),
	"OBJECT":    words(`encoding freq help idletime refcount`),
	"PSYNC":     words(`?`),
	"PUBSUB":    words(`channels help numpat numsub shardchannels shardnumsub`),
	"REPLCONF":  words(`ack capa getack ip-address listening-port rdb-filter-only rdb-only version`),
	"REPLICAOF": words(`no`),
	"SCRIPT":    words(`debug exists flush help kill load`),
	"SENTINEL": words(`ckquorum config debug failover flushconfig get-master-addr-by-name help info-cache is-master-down-by-addr master masters monitor myid pending-scripts remove replicas reset sentinels set
simulate-failure slaves`),
	"SLAVEOF": words(`no`),
	"SLOWLOG": words(`get help len reset`),
	"XGROUP":  words(`create createconsumer delconsumer destroy help setid`),
	"XINFO":   words(`consumers groups help stream`),
}

// respPushKinds are the first elements of messages a server sends on its own
// (RESP2: in subscribed mode; RESP3: as push type).
var respPushKinds = words("MESSAGE PMESSAGE SMESSAGE INVALIDATE TRACKING-REDIR-BROKEN")

// respSubscribe are the commands whose confirmations look like pushes.
var respSubscribe = words("SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(strings.ToUpper(list)) {
		set[w] = true
	}
	return set
}
