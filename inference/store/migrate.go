package store

import (
	"encoding/json"
	"fmt"

	"netsplit/model"
)

// migrations change the layout of a store by one schema each: migrations[i] makes
// schema i+2 of schema i+1.
var migrations = []func(x *Tx) error{indexRows}

// migrate brings a store to Schema, a step per Update, and keeps a copy of what it
// was beside it first.
func migrate(f *boltFile, schema int) error {
	if schema == Schema {
		return nil
	}
	beside := besideOf(f.path, schema)
	if err := f.copyTo(beside); err != nil {
		return fmt.Errorf("store %s: it is of an older netsplit and must be copied before it is migrated: make room for %s: %w", f.path, beside, err)
	}
	for ; schema < Schema; schema++ {
		err := f.update(func(t kvTx) error {
			if err := migrations[schema-1](&Tx{t}); err != nil {
				return err
			}
			var m meta
			if err := json.Unmarshal(t.get(bucketMeta, metaKey), &m); err != nil {
				return damagedError(f.path, "meta: "+err.Error())
			}
			m.Schema = schema + 1
			b, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return t.put(bucketMeta, metaKey, b)
		})
		if err != nil {
			return fmt.Errorf("store %s: bring it from schema %d to %d: %w", f.path, schema, schema+1, err)
		}
	}
	return nil
}

// besideOf is where migrate keeps a store of an older schema.
func besideOf(path string, schema int) string { return fmt.Sprintf("%s.schema-%d", path, schema) }

// indexRows makes the rows of lists and the index of cuts (schema 2).
func indexRows(x *Tx) error {
	err := each(x, bucketRuns, func(r model.RunSummary) error { return x.indexRun(&r) })
	if err == nil {
		err = clear(x, bucketFindingOrder) // of other keys
	}
	if err == nil {
		err = each(x, bucketFindings, x.indexFinding)
	}
	if err == nil {
		err = each(x, bucketPartitions, x.indexPartition)
	}
	return err
}

// each calls fn for the values of a bucket, one at a time, outside of a scan: it may
// change other buckets.
func each[T any](x *Tx, bucket string, fn func(T) error) error {
	for _, k := range keysOf(x, bucket) {
		v, err := decode[T](x.t.get(bucket, k))
		if err != nil {
			return err
		}
		if err := fn(v); err != nil {
			return err
		}
	}
	return nil
}

func clear(x *Tx, bucket string) error {
	for _, k := range keysOf(x, bucket) {
		if err := x.t.delete(bucket, k); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(x *Tx, bucket string) (keys [][]byte) {
	x.t.scan(bucket, nil, nil, false, func(k, _ []byte) bool {
		keys = append(keys, append([]byte{}, k...))
		return true
	})
	return keys
}
