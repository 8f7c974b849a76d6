package classify

import "strings"

// thriftMethod is what a method's arguments and exceptions are called, by
// number from 1.
type thriftMethod struct{ args, errors []string }

// thriftMethods are the methods of Cassandra's Thrift interface, of 0.7, 1.0
// and 3.11 together (the classes NAME_args and NAME_result of
// org.apache.cassandra.thrift.Cassandra): arguments, and behind "!" exceptions.
var thriftMethods = func() map[string]thriftMethod {
	methods := map[string]thriftMethod{}
	for _, line := range strings.Split(strings.TrimSpace(`
add: key column_parent column consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
atomic_batch_mutate: mutation_map consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
batch_mutate: mutation_map consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
cas: key column_family expected updates serial_consistency_level commit_consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
describe_cluster_name: 
describe_keyspace: keyspace ! NOT_FOUND INVALID_REQUEST
describe_keyspaces:  ! INVALID_REQUEST
describe_local_ring: keyspace ! INVALID_REQUEST
describe_partitioner: 
describe_ring: keyspace ! INVALID_REQUEST
describe_schema_versions:  ! INVALID_REQUEST
describe_snitch: 
describe_splits: cf_name start_token end_token keys_per_split ! INVALID_REQUEST
describe_splits_ex: cf_name start_token end_token keys_per_split ! INVALID_REQUEST
describe_token_map:  ! INVALID_REQUEST
describe_version: 
execute_cql3_query: query compression consistency ! INVALID_REQUEST UNAVAILABLE TIMED_OUT SCHEMA_DISAGREEMENT
execute_cql_query: query compression ! INVALID_REQUEST UNAVAILABLE TIMED_OUT SCHEMA_DISAGREEMENT
execute_prepared_cql3_query: item_id values consistency ! INVALID_REQUEST UNAVAILABLE TIMED_OUT SCHEMA_DISAGREEMENT
execute_prepared_cql_query: item_id values ! INVALID_REQUEST UNAVAILABLE TIMED_OUT SCHEMA_DISAGREEMENT
get: key column_path consistency_level ! INVALID_REQUEST NOT_FOUND UNAVAILABLE TIMED_OUT
get_count: key column_parent predicate consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
get_indexed_slices: column_parent index_clause column_predicate consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
get_multi_slice: request ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
get_paged_slice: column_family range start_column consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
get_range_slices: column_parent predicate range consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
get_slice: key column_parent predicate consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
insert: key column_parent column consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
login: auth_request ! AUTHENTICATION AUTHORIZATION
multiget_count: keys column_parent predicate consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
multiget_slice: keys column_parent predicate consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
prepare_cql3_query: query compression ! INVALID_REQUEST
prepare_cql_query: query compression ! INVALID_REQUEST
remove: key column_path timestamp consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
remove_counter: key path consistency_level ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
set_cql_version: version ! INVALID_REQUEST
set_keyspace: keyspace ! INVALID_REQUEST
system_add_column_family: cf_def ! INVALID_REQUEST SCHEMA_DISAGREEMENT
system_add_keyspace: ks_def ! INVALID_REQUEST SCHEMA_DISAGREEMENT
system_drop_column_family: column_family ! INVALID_REQUEST SCHEMA_DISAGREEMENT
system_drop_keyspace: keyspace ! INVALID_REQUEST SCHEMA_DISAGREEMENT
system_update_column_family: cf_def ! INVALID_REQUEST SCHEMA_DISAGREEMENT
system_update_keyspace: ks_def ! INVALID_REQUEST SCHEMA_DISAGREEMENT
trace_next_query: 
truncate: cfname ! INVALID_REQUEST UNAVAILABLE TIMED_OUT
`), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		args, errors, _ := strings.Cut(rest, "!")
		methods[name] = thriftMethod{strings.Fields(args), strings.Fields(errors)}
	}
	return methods
}()
