// What is new in this session's release, on OpenCode's own screen. It imports nothing, so that nothing is installed for it.
export default {
  id: "reef",
  tui: async (api, options) => {
    if (options?.notice) api.ui.toast({ variant: "info", message: options.notice, duration: 20000 })
  },
}
