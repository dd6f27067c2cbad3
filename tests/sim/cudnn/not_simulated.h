// The functions of cuDNN that PyTorch links against and the stand-in does not
// simulate. They answer CUDNN_STATUS_NOT_SUPPORTED.
#pragma once

// clang-format off
#define SIM_CUDNN_NOT_SIMULATED(X) \
  X(cudnnCTCLoss) \
  X(cudnnCTCLoss_v8) \
  X(cudnnConvolutionBackwardData) \
  X(cudnnConvolutionBackwardFilter) \
  X(cudnnConvolutionBiasActivationForward) \
  X(cudnnConvolutionForward) \
  X(cudnnCreateActivationDescriptor) \
  X(cudnnCreateCTCLossDescriptor) \
  X(cudnnCreateConvolutionDescriptor) \
  X(cudnnCreateDropoutDescriptor) \
  X(cudnnCreatePoolingDescriptor) \
  X(cudnnCreateRNNDataDescriptor) \
  X(cudnnCreateRNNDescriptor) \
  X(cudnnCreateSpatialTransformerDescriptor) \
  X(cudnnDestroyActivationDescriptor) \
  X(cudnnDestroyCTCLossDescriptor) \
  X(cudnnDestroyConvolutionDescriptor) \
  X(cudnnDestroyDropoutDescriptor) \
  X(cudnnDestroyRNNDataDescriptor) \
  X(cudnnDestroyRNNDescriptor) \
  X(cudnnDestroySpatialTransformerDescriptor) \
  X(cudnnDropoutGetStatesSize) \
  X(cudnnFindConvolutionBackwardDataAlgorithmEx) \
  X(cudnnFindConvolutionBackwardFilterAlgorithmEx) \
  X(cudnnFindConvolutionForwardAlgorithmEx) \
  X(cudnnGetCTCLossWorkspaceSize) \
  X(cudnnGetCTCLossWorkspaceSize_v8) \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7) \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize) \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize) \
  X(cudnnGetConvolutionForwardAlgorithm_v7) \
  X(cudnnGetConvolutionForwardWorkspaceSize) \
  X(cudnnGetRNNTempSpaceSizes) \
  X(cudnnGetRNNWeightParams) \
  X(cudnnGetRNNWeightSpaceSize) \
  X(cudnnPoolingForward) \
  X(cudnnRNNBackwardData_v8) \
  X(cudnnRNNBackwardWeights_v8) \
  X(cudnnRNNForward) \
  X(cudnnRestoreDropoutDescriptor) \
  X(cudnnSetActivationDescriptor) \
  X(cudnnSetCTCLossDescriptorEx) \
  X(cudnnSetCTCLossDescriptor_v9) \
  X(cudnnSetConvolutionGroupCount) \
  X(cudnnSetConvolutionMathType) \
  X(cudnnSetConvolutionNdDescriptor) \
  X(cudnnSetDropoutDescriptor) \
  X(cudnnSetPooling2dDescriptor) \
  X(cudnnSetRNNDataDescriptor) \
  X(cudnnSetRNNDescriptor_v8) \
  X(cudnnSetSpatialTransformerNdDescriptor) \
  X(cudnnSpatialTfGridGeneratorBackward) \
  X(cudnnSpatialTfGridGeneratorForward) \
  X(cudnnSpatialTfSamplerBackward) \
  X(cudnnSpatialTfSamplerForward)
// clang-format on
