internal import CofferTool

SecretTool.main()
