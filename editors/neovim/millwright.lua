-- Starts `millwright lsp` for definition files. Needs Neovim 0.8 or newer. Put it into ~/.config/nvim/plugin/.

local function definition(path)
  for _, pattern in ipairs({
    '/factory%.yaml$', '/webhooks/[^/]+%.yaml$', '/runners/[^/]+%.yaml$', '/environments/[^/]+%.yaml$',
    '/notifications/[^/]+%.yaml$',
    '/automations/[^/]+%.md$', '/automations/[^/]+/automation%.md$', '/agents/[^/]+/agent%.md$', '/skills/[^/]+/SKILL%.md$',
  }) do
    if path:match(pattern) then return true end
  end
end

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  pattern = { '*.yaml', '*.md' },
  callback = function(event)
    local path = vim.api.nvim_buf_get_name(event.buf)
    if not definition(path) then return end
    local marker = vim.fs.find({ 'factory.yaml', 'webhooks', 'automations' }, { upward = true, path = vim.fs.dirname(path) })[1]
    vim.lsp.start({
      name = 'millwright',
      cmd = { 'millwright', 'lsp' },
      root_dir = marker and vim.fs.dirname(marker) or vim.fs.dirname(path),
    })
  end,
})
