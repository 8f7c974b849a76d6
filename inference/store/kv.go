package store

// Names of the buckets.
const (
	bucketMeta         = "meta"
	bucketCampaigns    = "campaigns"            // id
	bucketCampaignTime = "campaigns-by-time"    // created, id -> nothing
	bucketRuns         = "runs"                 // id
	bucketRunOrder     = "runs-by-campaign"     // campaign, started, id -> row of a list
	bucketStarted      = "runs-started"         // id
	bucketInputs       = "inputs"               // campaign, number
	bucketFindings     = "findings"             // id
	bucketFindingOrder = "findings-by-campaign" // see findingKey -> row of a list
	bucketCuts         = "cuts"                 // class of length, start, whose -> annotation
	bucketInvariants   = "invariants"           // target, id
	bucketPartitions   = "partitions"           // name
	bucketPartTime     = "partitions-by-time"   // created, name -> nothing
	bucketKeys         = "idempotency-keys"
	bucketSchedules    = "schedules" // name
	bucketNotes        = "notes"     // id of a failure's history
)

// buckets lists all of them, in the order in which they are made.
var buckets = []string{
	bucketMeta, bucketCampaigns, bucketCampaignTime, bucketRuns, bucketRunOrder, bucketStarted,
	bucketInputs, bucketFindings, bucketFindingOrder, bucketInvariants, bucketPartitions, bucketKeys,
	bucketCuts, bucketPartTime, bucketSchedules, bucketNotes,
}

// appendOnly names the buckets whose keys only grow: their pages are filled
// to 90 % because nothing is ever put between.
var appendOnly = map[string]bool{bucketInputs: true, bucketCampaignTime: true, bucketPartTime: true}

// kv is what a store needs below it: transactions over ordered keys. Slices
// handed to callbacks are valid only inside the transaction.
type kv interface {
	update(func(kvTx) error) error
	view(func(kvTx) error) error
	size() (int64, error)
	close() error
}

type kvTx interface {
	get(bucket string, key []byte) []byte
	put(bucket string, key, value []byte) error
	delete(bucket string, key []byte) error
	// scan calls fn for the keys that begin with prefix, beginning at from
	// (nil: the first, or in reverse the last), until fn returns false. The
	// bucket must not be changed during a scan.
	scan(bucket string, prefix, from []byte, reverse bool, fn func(k, v []byte) bool)
}
