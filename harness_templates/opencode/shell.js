// OpenCode's own folders are Reef's; what it runs for the person finds theirs. null: they have no such variable.
export default {
  id: "reef-shell",
  server: async (_, options) => ({
    "shell.env": async (_, output) => {
      for (const [name, value] of Object.entries(options.theirs)) output.env[name] = value ?? undefined
    },
  }),
}
