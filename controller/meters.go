package controller

import (
	"context"
	"fmt"

	"netsplit/controller/of13"
)

// Meters reads how every meter is set up (OpenFlow 1.3 §7.3.5.12).
func (sw *Switch) Meters(ctx context.Context) ([]of13.MeterConfig, error) {
	parts, err := sw.Request(ctx, of13.NewMeterRequest(of13.MultipartMeterConfig, of13.MeterAll))
	return join[of13.MeterConfigReply](parts, err)
}

// MeterFeatures reads what the switch can do with meters (OpenFlow 1.3
// §7.3.5.13).
func (sw *Switch) MeterFeatures(ctx context.Context) (of13.MeterFeatures, error) {
	parts, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartMeterFeatures))
	if err != nil {
		return of13.MeterFeatures{}, err
	}
	if r, ok := parts[0].(*of13.MultipartReply); ok {
		if f, ok := r.Body.(*of13.MeterFeatures); ok {
			return *f, nil
		}
	}
	return of13.MeterFeatures{}, fmt.Errorf("%w: the features of meters were asked for, %v came", ErrProtocol, parts[0].MsgType())
}
