"""A hub on os-ken that sets up no flows, as ovs-testcontroller --noflow does."""
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3


class Hub(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.port_of = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, ev):
        dp = ev.msg.datapath
        of, parser = dp.ofproto, dp.ofproto_parser
        actions = [parser.OFPActionOutput(of.OFPP_CONTROLLER, of.OFPCML_NO_BUFFER)]
        inst = [parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, actions)]
        dp.send_msg(parser.OFPFlowMod(datapath=dp, priority=0, match=parser.OFPMatch(), instructions=inst))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        msg = ev.msg
        dp, in_port = msg.datapath, msg.match["in_port"]
        eth = packet.Packet(msg.data).get_protocols(ethernet.ethernet)[0]
        self.port_of[eth.src] = in_port
        out = self.port_of.get(eth.dst, dp.ofproto.OFPP_FLOOD)
        actions = [dp.ofproto_parser.OFPActionOutput(out)]
        dp.send_msg(dp.ofproto_parser.OFPPacketOut(datapath=dp, buffer_id=dp.ofproto.OFP_NO_BUFFER,
                                                   in_port=in_port, actions=actions, data=msg.data))
