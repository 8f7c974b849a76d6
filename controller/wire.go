package controller

import "netsplit/controller/of13"

func barrierRequest() of13.Message { return &of13.BarrierRequest{} }

func echoRequest() of13.Message { return &of13.EchoRequest{} }

// packetOutNote stands for a packet-out in an error: its data is gone.
func packetOutNote(out of13.PortNo) of13.Message {
	return of13.NewPacketOut(of13.PortController, nil, of13.Output{Port: out, MaxLen: of13.MaxLenNoBuffer})
}
