package classify

func newRESP() Dissector { return newText() }

func respDatagram(b []byte) Unit { return textDatagram(b) }
