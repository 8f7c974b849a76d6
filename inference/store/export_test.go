package store

// WithMaxSize bounds the file, in bytes, as a full disk does.
func WithMaxSize(bytes int) Option { return func(o *options) { o.maxSize = bytes } }
